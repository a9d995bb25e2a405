"""What a simulated node does for readers who ask the nearest replica, whoever leads.

It says with each answer how stale that may be (`replica.freshness`), if it knows, and waits before
it answers until it has what the reader has seen or written, and is as fresh as the reader wants.
What does not come about in time is not answered: the reader asks another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.ids import Offset, node_of
from angarium.replica.freshness import Freshness
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.requests import FetchRequest, HighWaterReply, HighWaterRequest

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode

LOOK_AGAIN: Final = 40 * MILLISECOND
"""When a node first looks whether a reader's question can be answered; later, less often."""
LOOK_AGAIN_MAX: Final = 320 * MILLISECOND
PATIENCE: Final = 2 * SECOND
"""How long a reader's question waits at a node."""


class _Asked(NamedTuple):
    group: RaftGroupId
    at: int


class Nearby:
    """What one node knows of how fresh it is, in one life of its process."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world
        self._fresh: dict[RaftGroupId, Freshness] = {}
        self._asked: dict[int, _Asked] = {}
        """Questions on their way to leaders, by their number."""
        self._number = node.life << 32  # an answer may outlive the process that asked

    def staleness(self, replica: PartitionReplica) -> int | None:
        """Return how stale what a replica shows may be at most; None if that is not known."""
        fresh = self._fresh.get(replica.group)
        if fresh is None:
            return None
        return fresh.staleness(now=self._world.scheduler.now, end=replica.end_offset)

    def may_answer(self, request: FetchRequest, replica: PartitionReplica) -> bool:
        """Tell whether a replica has, and knows to have, what a reader wants."""
        if replica.end_offset < request.at_least:
            return False
        if request.staleness_max is None:
            return True
        staleness = self.staleness(replica)
        return staleness is not None and staleness <= request.staleness_max

    def wait(self, request: FetchRequest, replica: PartitionReplica) -> None:
        """Answer later, after the leader has been asked where the log ends."""
        if request.staleness_max is not None:
            self._ask(replica)
        self._node.later(LOOK_AGAIN, self._look, request, self._world.scheduler.now)

    def heard(self, reply: HighWaterReply) -> None:
        """Hear where a leader's log ends."""
        asked = self._asked.pop(reply.number, None)
        if asked is not None:
            self._fresh.setdefault(asked.group, Freshness()).note(asked=asked.at, end=reply.end)

    def _look(self, request: FetchRequest, since: int) -> None:
        host, now = self._node.host, self._world.scheduler.now
        replica = None if host is None else host.replicas.get(request.group)
        if host is None or replica is None or now - since > PATIENCE:
            return
        if self.may_answer(request, replica):
            self._node.service.answer_fetch(request, replica)
        else:
            # Twice as long each time: looks were a quarter of all that happened in regions.
            self._node.later(min(now - since, LOOK_AGAIN_MAX), self._look, request, since)

    def _ask(self, replica: PartitionReplica) -> None:
        leader = replica.raft.leader
        if not leader:
            return
        self._number += 1
        self._asked[self._number] = _Asked(replica.group, self._world.scheduler.now)
        question = HighWaterRequest(self._node.name, self._number, replica.group, Offset(0), 0)
        self._world.network.send_once(self._node.name, f"node-{node_of(leader)}", question)
