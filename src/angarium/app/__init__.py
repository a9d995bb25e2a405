"""The composition root: settings in, running node out.

`settings` says what can be chosen, `sources` where it was chosen (flags, environment, node.toml),
`serving` builds a node from it and runs it until it is told to stop. Nothing else knows all rooms.
"""
