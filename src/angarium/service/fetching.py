"""Reading behind the contract: from this node's own replica, or through a node that has one."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from angarium.api import FETCH_BYTES_MAX, FETCH_WAIT_MS_MAX, FetchResult, StartAt
from angarium.api.reading import check_start
from angarium.batch import Batch, split
from angarium.batch.deadlines import expired_among
from angarium.errors import (
    AngariumError,
    CorruptData,
    InvalidArgument,
    LayoutChanged,
    NotLeader,
    OutcomeUnknown,
    TooStale,
    Unreachable,
)
from angarium.ids import Offset
from angarium.replica.starts import offset_of
from angarium.service.confirming import Confirming, confirm
from angarium.service.nearness import is_near, nearest_holder
from angarium.wire.operations import (
    FetchAnswer,
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import FetchRequest, Start
    from angarium.ids import Buffer, NodeId, RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics


HEARD_OF_MS: Final = 200
"""Within so long a follower hears by a heartbeat what is committed, even if one is lost."""

LAG_MS_MAX: Final = 500
"""How long a replica is given to get what its reader knows of; then the leader is asked."""

STALENESS_S_MAX: Final = 1.0
"""How long it may take to find out whether anything as new as a reader's bound can be read, beside
the way to the leader; then `TooStale` is raised."""

WAY_MS_MAX: Final = 1_000
"""How much is allowed for that way at the most."""

READER_S: Final = 1.0
"""Whoever was told of new records so lately will wait for more, or does already."""

FORGOTTEN_AT_ONCE: Final = 2
"""Partitions that nobody reads any more, forgotten whenever one is read: more than are added."""


class Fetching:
    """Reads partitions, and tells waiting readers when there is more to read."""

    def __init__(self, node: OwnNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics
        self._confirming = Confirming(node, topics, self)
        self._waiting: defaultdict[RaftGroupId, set[Callable[[], None]]] = defaultdict(set)
        self._last_read: dict[RaftGroupId, float] = {}
        """When somebody was last told of new records, by the monotonic clock; the latest is last,
        and nobody is in it for long after `READER_S`."""

    # --- waiting ----------------------------------------------------------------------------

    def announce(self, group: RaftGroupId) -> None:
        """Tell everybody who waits that `group` has new records."""
        waiting = self._waiting.pop(group, None)
        if waiting:
            self._note_read(group, time.monotonic())
            for woken in waiting:
                woken()

    def _note_read(self, group: RaftGroupId, now: float) -> None:
        """Remember that somebody reads `group`, and forget who has not for a while."""
        last_read = self._last_read
        last_read.pop(group, None)
        last_read[group] = now
        for oldest, when in list(islice(last_read.items(), FORGOTTEN_AT_ONCE)):
            if now - when >= READER_S:
                del last_read[oldest]

    def has_readers(self, group: RaftGroupId) -> bool:
        """Tell whether somebody waits for new records of `group`, or was told of some lately."""
        if self._waiting.get(group):
            return True
        last_read = self._last_read.get(group)
        return last_read is not None and time.monotonic() - last_read < READER_S

    def wait(self, group: RaftGroupId, woken: Callable[[], None]) -> None:
        """Have `woken` called once, when `group` has new records."""
        self._waiting[group].add(woken)

    def stop_waiting(self, group: RaftGroupId, woken: Callable[[], None]) -> None:
        """Forget a request to be told."""
        waiting = self._waiting.get(group)
        if waiting is not None:
            waiting.discard(woken)
            if not waiting:
                del self._waiting[group]

    # --- fetching ---------------------------------------------------------------------------

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches from an offset on."""
        if (request.max_staleness_ms or 0) < 0 or (request.at_least or 0) < 0:
            raise InvalidArgument(
                f"max_staleness_ms and at_least are not negative: {request.max_staleness_ms},"
                f" {request.at_least}"
            )
        if request.bytes_max < 1 or request.offset < 0 or request.wait_ms < 0:
            raise InvalidArgument(
                f"a fetch needs an offset >= 0, a size >= 1 and a wait >= 0, not "
                f"{request.offset}, {request.bytes_max} and {request.wait_ms}"
            )
        partition = await self._topics.partition(request.topic, request.partition)
        if request.max_staleness_ms is None:
            return await self._fetch(request, partition)
        try:
            async with asyncio.timeout(self._bounded_s(request, partition)):
                return await self._fetch(request, partition)
        except TimeoutError:
            why = "and nothing that is answers in time"
        except (NotLeader, Unreachable, OutcomeUnknown) as error:
            why = f"and the leader does not answer: {error}"
        raise TooStale(f"{_not_known_new(request)} ms old or newer, {why}")

    def _bounded_s(self, request: FetchRequest, partition: Partition) -> float:
        """Return how long a read with a bound may take, in seconds.

        The sum of the wait for records, `STALENESS_S_MAX`, and two round trips to the farthest
        voter: this node asks the leader, and the leader asks a majority. Without this bound
        readers of a replica that is cut off would wait for the whole timeout of a request.
        """
        assert request.max_staleness_ms is not None
        wait_ms = min(request.wait_ms, FETCH_WAIT_MS_MAX, request.max_staleness_ms)
        others = [one for one in partition.replicas if one != self._node.id]
        way_ms = max((self._node.round_trip_ms(one) or 0.0 for one in others), default=0.0)
        return (wait_ms + min(2 * way_ms, WAY_MS_MAX)) / 1_000 + STALENESS_S_MAX

    async def _fetch(self, request: FetchRequest, partition: Partition) -> FetchResult:
        replica = self._node.replicas.full(partition.group)
        if replica is None:
            return await self._forward(request, await self._holder(request, partition))
        is_behind = self._is_behind(replica, request) or await self._lacks(replica, request)
        if (request.fresh or is_behind) and not replica.may_serve:
            return await self._forward(request, await self._topics.leader(partition))
        if request.fresh:
            await confirm(self._node, replica)
        is_stopped = request.layout is not None and self.is_fenced_off(
            request.topic, request.partition, request.layout, replica
        )
        if request.wait_ms and request.offset >= replica.end_offset and not is_stopped:
            await self._wait_for(replica, request)
        staleness_ms = self._node.silence_ms(partition.group)
        if request.max_staleness_ms is not None:
            # Behind the wait: what is told has to be as new as that when it is told.
            known_ms = await self._confirming.known_ms(replica, partition, request)
            if known_ms is None:
                return await self._from_leader(request, partition)
            staleness_ms = known_ms
        bytes_max = min(request.bytes_max, FETCH_BYTES_MAX)
        batches = page_of(replica, request.offset, bytes_max=bytes_max)
        if request.layout is not None:
            fence = self.fence(request.topic, request.partition, request.layout, replica)
            if fence is not None:
                batches = before(batches, fence)
                if not batches:
                    raise fenced_off(request.topic, request.partition, request.layout)
        return FetchResult(
            start_offset=replica.partition.log.start_offset,
            end_offset=replica.end_offset,
            batches=tuple(batches),
            expired=self.expired(request.topic, batches),
            node=self._node.id,
            region=self._node.config.region,
            staleness_ms=staleness_ms,
        )

    def fence(
        self, topic: str, number: int, layout: int, replica: PartitionReplica
    ) -> Offset | None:
        """Return where who has read what comes before `layout` has to stop; None: nowhere."""
        known = self._node.catalog.find(topic)
        if known is not None and known.born(number) > layout:
            return Offset(0)
        return replica.partition.machine.fence(layout + 1)

    def is_fenced_off(
        self, topic: str, number: int, layout: int, replica: PartitionReplica
    ) -> bool:
        """Tell whether there is such a fence."""
        return self.fence(topic, number, layout, replica) is not None

    async def _lacks(self, replica: PartitionReplica, request: FetchRequest) -> bool:
        """Tell whether a replica has not what its reader knows of, not even a moment later."""
        if request.at_least is None or replica.may_serve or request.at_least < replica.end_offset:
            return False
        await self.come_to(replica, Offset(request.at_least + 1), within_ms=LAG_MS_MAX)
        return request.at_least >= replica.end_offset

    async def come_to(self, replica: PartitionReplica, end: Offset, *, within_ms: int) -> bool:
        """Wait until a replica ends at `end` or later; tell whether it does by then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_ms / 1_000):
                while replica.end_offset < end:
                    woken = asyncio.Event()
                    self.wait(replica.group, woken.set)
                    try:
                        await woken.wait()
                    finally:
                        self.stop_waiting(replica.group, woken.set)
        return replica.end_offset >= end

    async def _holder(self, request: FetchRequest, partition: Partition) -> NodeId:
        """Return who is asked where there is no replica here: the nearest node that has one."""
        if not request.forwarded and not request.fresh:
            near = nearest_holder(self._node, partition)
            if near is not None:
                return near
        return await self._topics.leader(partition)

    async def _from_leader(self, request: FetchRequest, partition: Partition) -> FetchResult:
        """Let the leader answer what no replica here is new enough for."""
        why = _not_known_new(request)
        if request.forwarded:
            raise TooStale(f"{why} ms old or newer at node {self._node.id}")
        try:
            leader = await self._topics.leader(partition)
            if leader != self._node.id:
                return await self._forward(request, leader)
        except TooStale:
            raise
        except AngariumError as error:
            raise TooStale(
                f"{why} ms old or newer, and the leader does not answer: {error}"
            ) from None
        raise TooStale(f"{why} ms old or newer: the leader does not hear a majority")

    def _is_behind(self, replica: PartitionReplica, request: FetchRequest) -> bool:
        """Tell whether there may be committed records that a follower does not know to be so.

        Who asks for more than it has has heard of it elsewhere. Who does not wait, or not for long,
        should not miss what is in its log already: it may hear only with the next heartbeat that
        this is committed.
        """
        if request.offset < replica.end_offset:
            return False
        if request.offset > replica.end_offset:
            return True
        if request.wait_ms >= HEARD_OF_MS or not replica.has_uncommitted:
            return False
        # Where nobody leads nobody can say more, and what is known can be read all the same: by a
        # reader that has come to its end, too.
        leader = self._node.leader_of(replica.group)
        # Nor is the leader asked across regions: how old this is is said, and can be bounded.
        return leader not in (None, self._node.id) and is_near(self._node, leader)

    def expired(self, topic: str, batches: Sequence[Buffer]) -> tuple[int, ...]:
        """Return which offsets of these batches have expired, by this node's clock."""
        known = self._node.catalog.find(topic)
        lifetime = None if known is None else known.settings.expiry_micros
        return expired_among(batches, now=self._node.now(), lifetime=lifetime)

    async def _wait_for(self, replica: PartitionReplica, request: FetchRequest) -> None:
        woken = asyncio.Event()
        self.wait(replica.group, woken.set)
        wait_ms = min(request.wait_ms, FETCH_WAIT_MS_MAX)
        if request.max_staleness_ms is not None:
            wait_ms = min(wait_ms, request.max_staleness_ms)  # then somebody has to look again
        wait_s = wait_ms / 1_000
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await woken.wait()
        self.stop_waiting(replica.group, woken.set)

    async def _forward(self, request: FetchRequest, to: NodeId) -> FetchResult:
        node = self._node
        frame = await node.peers.request(
            to,
            Operation.FETCH,
            FetchHeader.of(request, forwarded=True),
            timeout_s=node.config.request_timeout_s + request.wait_ms / 1_000,
        )
        return frame.read(FetchAnswer).result(tuple(split(frame.payload)))

    # --- offsets ----------------------------------------------------------------------------

    async def find_offset(self, topic: str, number: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""
        check_start(start)
        partition = await self._topics.partition(topic, number)
        replica = self._node.replicas.full(partition.group)
        if replica is not None:
            log = replica.partition.log
            offset = offset_of(log, start)
            # What a follower lacks yet lies at its end, and may have been appended before the time
            # that is asked for.
            is_sure = replica.may_serve or start.at in {StartAt.EARLIEST, StartAt.OFFSET}
            if is_sure or offset < log.end_offset:
                return offset
        frame = await self._node.peers.request(
            await self._topics.leader(partition),
            Operation.FIND_OFFSET,
            FindOffsetHeader(topic, number, start),
            timeout_s=self._node.config.request_timeout_s,
        )
        return frame.read(FindOffsetAnswer).offset


def _not_known_new(request: FetchRequest) -> str:
    named = f"{request.topic}[{request.partition}]"
    return f"{named} is not known to be {request.max_staleness_ms}"


def before(batches: list[memoryview], fence: Offset) -> list[memoryview]:
    """Return the batches before a fence, which lies between two."""
    return [one for one in batches if Batch.trusted(one).base_offset < fence]


def fenced_off(topic: str, partition: int, layout: int) -> LayoutChanged:
    """Return what a reader is told that has come to a fence."""
    return LayoutChanged(
        f"{topic} {partition} goes on by layout {layout + 1}; read the older partitions up to its "
        "fences first"
    )


def page_of(replica: PartitionReplica, offset: Offset, *, bytes_max: int) -> list[memoryview]:
    """Return batches from `offset` on that fill at least half of `bytes_max`, if there are so many.

    A read of the log also ends where a segment does, and where what is written to files does. For
    a page neither is an end.
    """
    batches = replica.fetch(offset, bytes_max=bytes_max)
    room = bytes_max - sum(map(len, batches))
    while batches and 2 * room > bytes_max:
        after = Batch.trusted(batches[-1]).next_offset
        if after >= replica.end_offset:
            break
        try:
            more = replica.fetch(after, bytes_max=room)
        except CorruptData:
            break  # the next caller is told
        if not more or len(more[0]) > room:
            break
        batches += more
        room -= sum(map(len, more))
    return batches
