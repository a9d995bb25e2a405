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
from angarium.errors import CorruptData, InvalidArgument
from angarium.node.deadlines import in_time
from angarium.replica.starts import offset_of
from angarium.settling import settling
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
    from angarium.ids import Buffer, Offset, RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics


HEARD_OF_MS: Final = 200
"""Within so long a follower hears by a heartbeat what is committed, even if one is lost."""

READER_S: Final = 1.0
"""Whoever was told of new records so lately will wait for more, or does already."""

FORGOTTEN_AT_ONCE: Final = 2
"""Partitions that nobody reads any more, forgotten whenever one is read: more than are added."""


class Fetching:
    """Reads partitions, and tells waiting readers when there is more to read."""

    def __init__(self, node: OwnNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics
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
        if request.bytes_max < 1 or request.offset < 0 or request.wait_ms < 0:
            raise InvalidArgument(
                f"a fetch needs an offset >= 0, a size >= 1 and a wait >= 0, not "
                f"{request.offset}, {request.bytes_max} and {request.wait_ms}"
            )
        partition = await self._topics.partition(request.topic, request.partition)
        replica = self._node.replicas.full(partition.group)
        is_behind = replica is not None and self._is_behind(replica, request)
        if replica is None or ((request.fresh or is_behind) and not replica.may_serve):
            return await self._forward(request, partition)
        if request.fresh:
            await self._confirm(replica)
        if request.wait_ms and request.offset >= replica.end_offset:
            await self._wait_for(replica, request)
        bytes_max = min(request.bytes_max, FETCH_BYTES_MAX)
        batches = page_of(replica, request.offset, bytes_max=bytes_max)
        return FetchResult(
            start_offset=replica.partition.log.start_offset,
            end_offset=replica.end_offset,
            batches=tuple(batches),
            expired=self.expired(request.topic, batches),
        )

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
        return self._node.leader_of(replica.group) not in (None, self._node.id)

    def expired(self, topic: str, batches: Sequence[Buffer]) -> tuple[int, ...]:
        """Return which offsets of these batches have expired, by this node's clock."""
        known = self._node.catalog.find(topic)
        lifetime = None if known is None else known.settings.expiry_micros
        return expired_among(batches, now=self._node.now(), lifetime=lifetime)

    async def _confirm(self, replica: PartitionReplica) -> None:
        """Wait until this leader knows that it still leads, and has applied what is committed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        replica.read_index(settling(future))
        replica.process()
        self._node.wake()
        async with in_time(self._node.config.request_timeout_s, "asking whether it still leads"):
            await future

    async def _wait_for(self, replica: PartitionReplica, request: FetchRequest) -> None:
        woken = asyncio.Event()
        self.wait(replica.group, woken.set)
        wait_s = min(request.wait_ms, FETCH_WAIT_MS_MAX) / 1_000
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await woken.wait()
        self.stop_waiting(replica.group, woken.set)

    async def _forward(self, request: FetchRequest, partition: Partition) -> FetchResult:
        node = self._node
        frame = await node.peers.request(
            await self._topics.leader(partition),
            Operation.FETCH,
            FetchHeader(
                request.topic,
                request.partition,
                request.offset,
                request.bytes_max,
                request.wait_ms,
                request.fresh,
            ),
            timeout_s=node.config.request_timeout_s + request.wait_ms / 1_000,
        )
        answer = frame.read(FetchAnswer)
        return FetchResult(
            start_offset=answer.start_offset,
            end_offset=answer.end_offset,
            batches=tuple(split(frame.payload)),
            expired=answer.expired,
        )

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
