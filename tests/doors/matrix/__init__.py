"""Every door, every method of the contract, every kind of caller: tried from outside.

What a caller is told is held against what the one table of rules says (`service.access.rules`,
`security.roles`), worked out by a reading of it that shares no code with the node's own
(`expected`). `make matrix` tries all of it and writes the counts into docs/trust/security.md.
"""
