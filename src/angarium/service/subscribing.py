"""Subscriptions behind the contract: deliveries are read when they are asked for.

A subscription holds a cursor per partition and nothing else. One that is read slowly is asked
less often, so a slow subscriber costs neither memory nor anybody else's time. A partition without
a replica here is read through a node that has one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from msgspec.structs import replace

from angarium.api import Delivery, FetchRequest, FetchResult, StartAt
from angarium.api.reading import check_start
from angarium.batch import Batch
from angarium.errors import AngariumError, InvalidArgument, LayoutChanged, OffsetOutOfRange
from angarium.ids import Offset
from angarium.service.fetching import before

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import Interest
    from angarium.ids import RaftGroupId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.dispatching import Dispatcher
    from angarium.service.fetching import Fetching
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

DELIVERY_BYTES_MAX = 256 << 10
"""Bytes in one delivery, so that partitions take turns; a larger single batch comes alone."""

LIVE_BYTES_MAX = 16 << 20
"""Bytes from memory that wait for one subscriber. At the limit they are dropped, and counted."""

REMOTE_WAIT_MS = 5_000
"""How long a node without a replica waits at one that has it for more to come."""


class Subscribing:
    """Makes subscriptions."""

    def __init__(
        self, node: OwnNode, topics: Topics, fetching: Fetching, dispatcher: Dispatcher
    ) -> None:
        self._node = node
        self._topics = topics
        self._fetching = fetching
        self._dispatcher = dispatcher

    async def subscribe(self, interests: Sequence[Interest]) -> LocalSubscription:
        """Begin to deliver partitions."""
        subscription = LocalSubscription(self._node, self._topics, self._fetching, self._dispatcher)
        try:
            await subscription.add(interests)
        except BaseException:
            await subscription.close()
            raise
        return subscription

    async def passing(self, topic: str, partitions: Sequence[int]) -> LocalSubscription:
        """Begin to deliver what passes in PERFORMANCE mode, and nothing that is stored.

        The topic need not be there yet.
        """
        subscription = LocalSubscription(self._node, self._topics, self._fetching, self._dispatcher)
        try:
            for partition in partitions:
                subscription.listen(topic, partition)
            await self._dispatcher.known()
        except BaseException:
            await subscription.close()
            raise
        return subscription


class _Cursor:
    """How far a subscriber is in one partition."""

    __slots__ = ("group", "interest", "knows", "next", "task", "wake")

    def __init__(self, interest: Interest, group: RaftGroupId, start: Offset) -> None:
        self.interest = interest
        self.group = group
        self.next = start
        self.knows = -1 if interest.at_least is None else interest.at_least
        """Up to where the subscriber knows of records: what this replica lacks is got elsewhere."""
        self.wake = lambda: None
        self.task: asyncio.Task[None] | None = None


class LocalSubscription:
    """One subscriber's partitions. Its user iterates; nothing is read before it asks."""

    def __init__(
        self, node: OwnNode, topics: Topics, fetching: Fetching, dispatcher: Dispatcher
    ) -> None:
        self.live_dropped = 0
        """Deliveries from memory that were not taken in time."""
        self._node = node
        self._topics = topics
        self._fetching = fetching
        self._dispatcher = dispatcher
        self._live: deque[Delivery] = deque()
        self._live_bytes = 0
        self._cursors: dict[tuple[str, int], _Cursor] = {}
        self._listening: list[tuple[str, int]] = []
        """Partitions whose stored records are not wanted, only what passes."""
        self._ready: deque[_Cursor] = deque()
        self._arrived: deque[Delivery] = deque()
        self._something = asyncio.Event()
        self._taken = asyncio.Event()
        """Set when a delivery that came from another node has been taken out."""
        self._error: AngariumError | None = None
        self._closed = False

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too; each from its own start. Raises if one is not there.

        Returns when nothing more can be missed, neither of what is stored nor of what passes:
        every node knows by then.
        """
        partitions = []
        for interest in interests:
            check_start(interest.start)
            if (interest.at_least or 0) < 0:
                raise InvalidArgument(f"at_least is not negative: {interest.at_least}")
            partitions.append(await self._topics.partition(interest.topic, interest.partition))
        for interest, partition in zip(interests, partitions, strict=True):
            start = await self._begin(interest)
            if self._closed:
                self._dispatcher.leave(interest.topic, interest.partition, self)
                return
            await self.drop(interest.topic, interest.partition)
            cursor = _Cursor(interest, partition.group, start)
            self._cursors[interest.topic, interest.partition] = cursor
            self._dispatcher.listen(interest.topic, interest.partition, self)
            if not self._read_here(cursor):
                cursor.task = asyncio.create_task(self._follow(cursor))
        await self._dispatcher.known()

    def _read_here(self, cursor: _Cursor) -> bool:
        """Read a partition from this node's replica from now on, if that will do; tell whether."""
        replica = self._node.replicas.full(cursor.group)
        # With a bound, every page is looked at anew, and whether nothing has come, too.
        if replica is None or cursor.interest.max_staleness_ms is not None:
            return False
        if cursor.next <= cursor.knows and replica.end_offset <= cursor.knows:
            return False
        cursor.wake = lambda one=cursor: self._wake(one)  # type: ignore[misc]
        self._wake(cursor)
        return True

    async def _begin(self, interest: Interest) -> Offset:
        """Listen to what passes, and return where what is stored begins.

        In this order: finding that out may take a while, in which something may pass.
        """
        topic_partition = (interest.topic, interest.partition)
        self._dispatcher.listen(*topic_partition, self)
        try:
            if interest.start.at is StartAt.OFFSET:
                return Offset(interest.start.value)
            return await self._fetching.find_offset(*topic_partition, interest.start)
        except BaseException:
            if topic_partition not in self._cursors and topic_partition not in self._listening:
                self._dispatcher.leave(*topic_partition, self)
            raise

    def listen(self, topic: str, partition: int) -> None:
        """Deliver what passes in a partition, and nothing that is stored there."""
        self._listening.append((topic, partition))
        self._dispatcher.listen(topic, partition, self)

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""
        cursor = self._cursors.pop((topic, partition), None)
        if cursor is not None:
            self._dispatcher.leave(topic, partition, self)
            self._fetching.stop_waiting(cursor.group, cursor.wake)
            if cursor.task is not None:
                cursor.task.cancel()

    async def close(self) -> None:
        """End it."""
        self._closed = True
        for topic, partition in list(self._cursors):
            await self.drop(topic, partition)
        for topic, partition in self._listening:
            self._dispatcher.leave(topic, partition, self)
        self._something.set()

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        """Return the next delivery, waiting for one if need be."""
        while True:
            delivery = self._next()
            if delivery is not None:
                return delivery
            if self._error is not None:
                raise self._error
            if self._closed:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()

    def push(self, delivery: Delivery) -> None:
        """Take a delivery from memory, or drop it if the subscriber is too far behind."""
        size = sum(map(len, delivery.batches))
        if self._live_bytes + size > LIVE_BYTES_MAX:
            self.live_dropped += 1
            return
        self._live_bytes += size
        self._live.append(delivery)
        self._something.set()

    def _next(self) -> Delivery | None:
        if self._live:
            live = self._live.popleft()
            self._live_bytes -= sum(map(len, live.batches))
            return live
        if self._arrived:
            self._taken.set()
            return self._arrived.popleft()
        while self._ready:
            cursor = self._ready.popleft()
            if self._cursors.get((cursor.interest.topic, cursor.interest.partition)) is not cursor:
                continue
            replica = self._node.replicas.get(cursor.group)
            if replica is None:
                cursor.task = asyncio.create_task(self._follow(cursor))
                continue
            delivery = self._read(cursor, replica)
            if delivery is not None:
                return delivery
        return None

    def _read(self, cursor: _Cursor, replica: PartitionReplica) -> Delivery | None:
        fence = self._fence(cursor.interest, replica)
        # Looked for before each read: it has come with the records behind it, or earlier.
        if fence is not None and cursor.next >= fence:
            return self._stopped(cursor.interest)
        if cursor.next >= replica.end_offset:
            # Ask to be told first: nothing can come in between, for all this is one turn.
            self._fetching.wait(cursor.group, cursor.wake)
            return None
        start = cursor.next
        interest = cursor.interest
        batches = replica.fetch(start, bytes_max=DELIVERY_BYTES_MAX)
        if fence is not None:
            batches = before(batches, fence)
            if not batches:
                return self._stopped(interest)
        if not batches:
            cursor.next = replica.end_offset
            self._fetching.wait(cursor.group, cursor.wake)
            return None
        cursor.next = Batch.trusted(batches[-1]).next_offset
        self._ready.append(cursor)
        return Delivery(
            topic=interest.topic,
            partition=interest.partition,
            batches=tuple(batches),
            from_offset=start,
            expired=self._fetching.expired(interest.topic, batches),
            node=self._node.id,
            region=self._node.config.region,
            staleness_ms=self._node.silence_ms(cursor.group),
        )

    def _fence(self, interest: Interest, replica: PartitionReplica) -> Offset | None:
        if interest.layout is None:
            return None
        return self._fetching.fence(interest.topic, interest.partition, interest.layout, replica)

    def _stopped(self, interest: Interest) -> Delivery:
        """Deliver nothing more of a partition that has come to a fence, and say so."""
        cursor = self._cursors.pop((interest.topic, interest.partition))
        self._dispatcher.leave(interest.topic, interest.partition, self)
        self._fetching.stop_waiting(cursor.group, cursor.wake)
        return _stop_of(interest)

    def _wake(self, cursor: _Cursor) -> None:
        self._ready.append(cursor)
        self._something.set()

    async def _follow(self, cursor: _Cursor) -> None:
        """Read a partition page by page, as long as the subscriber keeps up."""
        interest = cursor.interest
        try:
            while True:
                result = await self._page(cursor)
                if result.end_offset > cursor.knows and not result.batches:
                    cursor.knows = -1  # nothing is left of what it knew of
                if result.batches:
                    start, cursor.next = cursor.next, Batch.trusted(result.batches[-1]).next_offset
                    self._arrived.append(
                        Delivery(
                            topic=interest.topic,
                            partition=interest.partition,
                            batches=result.batches,
                            from_offset=start,
                            expired=result.expired,
                            node=result.node,
                            region=result.region,
                            staleness_ms=result.staleness_ms,
                        )
                    )
                    self._something.set()
                    self._taken.clear()
                    await self._taken.wait()
                if interest.at_least is not None and self._read_here(cursor):
                    return
        except LayoutChanged:
            self._arrived.append(_stop_of(interest))
            self._something.set()
        except AngariumError as error:
            if interest.may_fail_alone:
                self._ended_alone(cursor, error)
            else:
                self._error = error
            self._something.set()

    def _ended_alone(self, cursor: _Cursor, error: AngariumError) -> None:
        """Deliver nothing more of a partition that cannot be read, and say why."""
        interest = cursor.interest
        topic_partition = (interest.topic, interest.partition)
        if self._cursors.get(topic_partition) is cursor:
            del self._cursors[topic_partition]
            self._dispatcher.leave(*topic_partition, self)
            self._arrived.append(
                Delivery(
                    topic=interest.topic,
                    partition=interest.partition,
                    batches=(),
                    failure=error,
                )
            )

    async def _page(self, cursor: _Cursor) -> FetchResult:
        """Return what a node with a replica has from there on, waiting for it a while."""
        interest, offset = cursor.interest, cursor.next
        known = max(offset - 1, cursor.knows)
        request = FetchRequest(
            topic=interest.topic,
            partition=interest.partition,
            offset=offset,
            bytes_max=DELIVERY_BYTES_MAX,
            wait_ms=REMOTE_WAIT_MS,
            layout=interest.layout,
            at_least=None if known < 0 else Offset(known),
            max_staleness_ms=interest.max_staleness_ms,
        )
        try:
            return await self._fetching.fetch(request)
        except OffsetOutOfRange as error:
            if offset <= error.end:
                raise
            # Not there yet: a node with a replica waits, too. Something has to come first.
            await self._fetching.fetch(replace(request, offset=Offset(error.end)))
            return FetchResult(start_offset=Offset(error.start), end_offset=Offset(error.end))


def _stop_of(interest: Interest) -> Delivery:
    return Delivery(topic=interest.topic, partition=interest.partition, batches=(), fenced=True)
