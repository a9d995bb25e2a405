"""How long what somebody has open outlives the right to it, at every door.

    python -m tests.doors.revoking [--nodes 3] [--times 5]

opens everything that stays open, takes the right away at another node, and tells how long each was
still there.
"""
