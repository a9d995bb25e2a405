"""Where nodes may be found: one port (`port.py`) with four adapters that only yield addresses.

An address is a hint where to look. Who answers there, and whether that is a node of this cluster,
its greeting and its certificate say; who is a member the catalog decides. So nothing here has to be
believed: what a wrong answer costs is a connection that leads nowhere.
"""
