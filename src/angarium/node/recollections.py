"""How far the others' logs were durable when they last said so. Pure.

A log that was durable up to some position ends there or later for as long as its disk lasts. A node
that comes back with one that ends earlier has lost what it acknowledged: its data folder was
replaced by an older copy, or its disk did not keep what it had synced. Raft cannot tell; the others
can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import node_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.ids import NodeId, ReplicaId


class Recollections:
    """For each replica that was met, the furthest end of its log that it has told of."""

    def __init__(self, ends: Mapping[ReplicaId, int] | None = None) -> None:
        self.ends: dict[ReplicaId, int] = dict(ends or {})

    def note(self, replica: ReplicaId, end: int) -> bool:
        """Remember how far a log is durable; tell whether that was news. 0: it does not say."""
        if end <= self.ends.get(replica, 0):
            return False
        for earlier in [one for one in self.ends if node_of(one) == node_of(replica)]:
            del self.ends[earlier]  # a node with another disk is somebody else
        self.ends[replica] = end
        return True

    def forget(self, is_gone: Callable[[NodeId], bool]) -> bool:
        """Forget nodes that cannot come back; tell whether there were any."""
        gone = [one for one in self.ends if is_gone(node_of(one))]
        for one in gone:
            del self.ends[one]
        return bool(gone)

    def objection(self, replica: ReplicaId, end: int) -> str | None:
        """Say what is wrong with a replica whose log ends at `end`, or None.

        A log that ends at 0 is gone: somebody has kept who the node is, and nothing else.
        """
        known = self.ends.get(replica, 0)
        if end >= known:
            return None
        node = node_of(replica)
        return (
            f"the log of node {node} ended at {known} when it last said so, and ends at {end} now: "
            "its data folder was replaced by an older copy, or its disk lost what it had synced. "
            "It must not vote with what is left: put the newest folder back, or empty the folder "
            f"and start the node with --join and ANGARIUM_NODE_ID={node}"
        )
