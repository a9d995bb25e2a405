"""How old what a replica holds may be: asking until it is known (`replica.freshness` has the rule).

A leader finds out by asking a majority whether it still leads. Any other replica asks the leader,
which does that, where its log ends, and waits until it has come there. The leader's records stay
where they are: a question costs a round trip and a few bytes, and its answer is good for as long as
the reader's bound.

Hearing from the leader is less than that. Heartbeats do not say what a replica lacks, so however
lately one came, records may be missing. That age is stated where nobody asked for a bound
(`OwnNode.silence_ms`); a bound is kept by asking.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.node.deadlines import in_time
from angarium.replica.freshness import Freshness
from angarium.settling import settling
from angarium.wire.operations import FetchAnswer, FetchHeader, Operation

if TYPE_CHECKING:
    from typing import Protocol

    from angarium.api import FetchRequest
    from angarium.ids import Offset, RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

    class Catching(Protocol):
        """Waits for replicas."""

        async def come_to(
            self, replica: PartitionReplica, end: Offset, *, within_ms: int
        ) -> bool: ...


ASK_S_MAX: Final = 2.0
"""How long a leader may take to say where its log ends, and a replica then to get there."""

KNOWN_MAX: Final = 10_000
"""Partitions of which it is remembered when they were current. At the bound all are forgotten, and
asked about again."""


class Confirming:
    """What one node knows of its replicas."""

    def __init__(self, node: OwnNode, topics: Topics, catching: Catching) -> None:
        self._node = node
        self._topics = topics
        self._catching = catching
        self._known: dict[RaftGroupId, tuple[PartitionReplica, Freshness]] = {}
        """With which replica is meant: after a move it is another one."""

    async def known_ms(
        self, replica: PartitionReplica, partition: Partition, request: FetchRequest
    ) -> int | None:
        """Return how old what a replica holds may be; None if nobody can tell.

        The leader is asked, unless it is known already that this is less than the request allows.
        """
        assert request.max_staleness_ms is not None
        freshness = self._freshness(replica)
        bound = request.max_staleness_ms * 1_000
        found = freshness.staleness(now=_now(), end=replica.end_offset)
        if found is None or found > bound:
            asked = _now()
            try:
                async with asyncio.timeout(ASK_S_MAX):
                    end = await self._end(replica, partition, request)
            except (AngariumError, TimeoutError):
                return None
            freshness.note(asked=asked, end=end)
            # Until it has come there, what the leader told of is missing here.
            await self._catching.come_to(replica, end, within_ms=int(ASK_S_MAX * 1_000))
            found = freshness.staleness(now=_now(), end=replica.end_offset)
            # Where the way to the leader and back is longer than the bound, the leader answers. It
            # has asked after the request came, and nobody can do more.
            if found is None or (found > bound and not replica.may_serve):
                return None
        return -(-found // 1_000)

    def _freshness(self, replica: PartitionReplica) -> Freshness:
        known, freshness = self._known.get(replica.group, (None, Freshness()))
        if known is not replica:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            freshness = Freshness()
            self._known[replica.group] = (replica, freshness)
        return freshness

    async def _end(
        self, replica: PartitionReplica, partition: Partition, request: FetchRequest
    ) -> Offset:
        """Return where the log ends, as a leader says that knows that it leads."""
        if replica.may_serve:
            await confirm(self._node, replica)
            return replica.end_offset
        return await self._leaders_end(replica, partition, request)

    async def _leaders_end(
        self, replica: PartitionReplica, partition: Partition, request: FetchRequest
    ) -> Offset:
        header = FetchHeader(
            request.topic, request.partition, replica.end_offset, 1, fresh=True, forwarded=True
        )
        frame = await self._node.peers.request(
            await self._topics.leader(partition), Operation.FETCH, header, timeout_s=ASK_S_MAX
        )
        return frame.read(FetchAnswer).end_offset


async def confirm(node: OwnNode, replica: PartitionReplica) -> None:
    """Wait until this leader knows that it still leads, and has applied what is committed."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    replica.read_index(settling(future))
    replica.poke()
    node.wake()
    async with in_time(node.config.request_timeout_s, "asking whether it still leads"):
        await future


def _now() -> int:
    """Return the time of a clock that nobody sets, in µs."""
    return time.monotonic_ns() // 1_000
