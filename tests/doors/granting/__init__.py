"""Grants that change under load: nobody who may publish is refused meanwhile.

python -m tests.doors.granting [--nodes 3] [--changes 100]
"""
