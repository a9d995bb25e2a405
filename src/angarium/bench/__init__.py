"""Measuring a cluster: load that is timed without flattering it, and records that are all checked.

`plan` says what to do, `cluster` starts nodes to do it to, `drivers` speak the protocols, `load`
runs the workers, `verify` looks at every record afterwards and `report` says what came out.
"""
