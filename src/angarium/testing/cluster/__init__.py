"""A cluster of real node processes that a test may kill, pause, part, fill up and wipe.

What clients did and saw is written down as the simulator does it (`angarium.testing.history`), so
that the same checkers judge both. `tests/cluster`, `make chaos` and `make soak` are built on it.
"""

from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.cluster.contact import Contact
from angarium.testing.cluster.load import Load
from angarium.testing.cluster.processes import NodeProcess
from angarium.testing.cluster.waiting import eventually

__all__ = ["Contact", "Load", "NodeProcess", "ProcessCluster", "eventually"]
