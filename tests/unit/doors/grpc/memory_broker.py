"""A broker in memory, which keeps the contract's word: what the door's tests stand on."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from tests.unit.doors.grpc.memory_groups import MemoryGroups

from angarium.api import (
    Ack,
    ClusterStatus,
    Delivery,
    FetchRequest,
    FetchResult,
    Interest,
    NodeInfo,
    PartitionInfo,
    Place,
    Producer,
    PublishRequest,
    Start,
    TopicConfig,
    TopicInfo,
)
from angarium.batch import Batch, stamp
from angarium.batch.deadlines import expired_among
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    InvalidBatch,
    KeyReused,
    NotFound,
    OffsetOutOfRange,
    SequenceGap,
)
from angarium.ids import Epoch, Index, Micros, NodeId, Offset, ProducerId, Term, TopicId
from angarium.machine.keys import KEYED_FROM
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.ids import Buffer

TERM = Term(3)
CREATED_AT = Micros(1_700_000_000_000_000)


class MemoryPartition:
    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.end = Offset(0)
        self.sequences: dict[tuple[int, int], int] = {}
        self.keys: dict[int, int] = {}

    def append(self, buffer: Buffer) -> Ack | tuple[Offset, Offset, Micros]:
        batch = Batch.parse(buffer)
        if batch.producer_id >= KEYED_FROM:
            known = self.keys.setdefault(batch.producer_id, batch.first_sequence)
            if known != batch.first_sequence:
                raise KeyReused("the key was used before, for something else")
        elif batch.producer_id:
            expected = self.sequences.get((batch.producer_id, batch.epoch), 0)
            if batch.first_sequence > expected:
                raise SequenceGap(f"expected {expected}, got {batch.first_sequence}")
            if batch.first_sequence < expected:
                return Ack(mode=DeliveryMode.CONSISTENT, topic="", partition=0, duplicate=True)
            self.sequences[batch.producer_id, batch.epoch] = batch.last_sequence + 1
        base, time = self.end, Micros(CREATED_AT + len(self.batches) + 1)
        assert not memoryview(buffer).readonly, "the leader stamps batches in place"
        stamp(memoryview(buffer), base_offset=base, term=TERM, append_time=time)
        self.end = Offset(base + len(batch))
        self.batches.append(bytes(buffer))
        return base, self.end, time

    def from_offset(self, offset: int) -> list[bytes]:
        return [one for one in self.batches if Batch.trusted(one).next_offset > offset]


class MemoryTopic:
    def __init__(self, topic_id: int, name: str, partitions: int, config: TopicConfig) -> None:
        self.id, self.name, self.config = TopicId(topic_id), name, config
        self.partitions = [MemoryPartition() for _ in range(partitions)]

    def info(self) -> TopicInfo:
        return TopicInfo(
            id=self.id,
            name=self.name,
            config=self.config,
            partitions=tuple(
                PartitionInfo(
                    number=number,
                    replicas=(NodeId(1), NodeId(2), NodeId(3)),
                    leader=NodeId(1 + number % 3) if number != 2 else None,
                    start_offset=Offset(0) if number != 2 else None,
                    end_offset=partition.end if number != 2 else None,
                    in_sync=(NodeId(1), NodeId(3)) if number == 0 else None,
                )
                for number, partition in enumerate(self.partitions)
            ),
            created_at=CREATED_AT,
        )


class MemorySubscription:
    """Delivers what is there, then what comes; counts what was taken from it."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._positions: dict[tuple[str, int], int] = {}
        self._live: deque[Delivery] = deque()
        self.changed = asyncio.Event()
        self.taken = 0
        self.closed = False
        self.broken: AngariumError | None = None

    async def add(self, interests: Sequence[Interest]) -> None:
        for one in interests:
            offset = await self._broker.find_offset(one.topic, one.partition, one.start)
            self._positions[one.topic, one.partition] = offset
        self.changed.set()

    async def drop(self, topic: str, partition: int) -> None:
        self._positions.pop((topic, partition), None)

    async def close(self) -> None:
        self.closed = True
        self._broker.subscriptions.remove(self)
        self.changed.set()

    def hand_over(self, delivery: Delivery) -> bool:
        if (delivery.topic, delivery.partition) not in self._positions:
            return False
        self._live.append(delivery)
        self.changed.set()
        return True

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while not self.closed:
            if self.broken is not None:
                raise self.broken
            delivery = self._next()
            if delivery is not None:
                self.taken += 1
                yield delivery
            else:
                self.changed.clear()
                await self.changed.wait()

    def _next(self) -> Delivery | None:
        if self._live:
            return self._live.popleft()
        for (topic, number), offset in self._positions.items():
            batches = self._broker.partition(topic, number).from_offset(offset)
            if batches:
                self._positions[topic, number] = Batch.trusted(batches[-1]).next_offset
                return Delivery(
                    topic=topic,
                    partition=number,
                    batches=tuple(batches),
                    from_offset=Offset(offset),
                    expired=expired_among(batches, now=self._broker.now),
                )
        return None


class MemoryBroker(MemoryGroups):
    """Implements `angarium.api.Broker`; `trouble` makes the next calls fail."""

    def __init__(self) -> None:
        self.topics: dict[str, MemoryTopic] = {}
        self.requests: list[PublishRequest] = []
        self.subscriptions: list[MemorySubscription] = []
        self.calls: list[tuple[object, ...]] = []
        self.trouble: Exception | None = None
        self.trouble_in: dict[int, Exception] = {}
        """By partition."""
        self.hang: asyncio.Event | None = None
        """While there is one and it is not set, everything but partition 3 waits."""
        self.cancelled = 0
        self.now = Micros(1)
        """By this clock records expire."""
        self._producers: dict[str | None, tuple[int, int]] = {}
        self._counters: defaultdict[str, int] = defaultdict(int)

    def partition(self, topic: str, number: int) -> MemoryPartition:
        partitions = self._topic(topic).partitions
        if not 0 <= number < len(partitions):
            raise NotFound(f"{topic} has no partition {number}")
        return partitions[number]

    def _topic(self, name: str) -> MemoryTopic:
        if name not in self.topics:
            raise NotFound(f"there is no topic {name!r}")
        return self.topics[name]

    async def _meet_trouble(self, partition: int | None = None) -> None:
        if self.hang is not None and partition != 3:
            try:
                await self.hang.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.trouble is not None:
            raise self.trouble
        if partition is not None and partition in self.trouble_in:
            raise self.trouble_in[partition]

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        self.requests.append(request)
        await self._meet_trouble(request.partition)
        topic = self._topic(request.topic)
        partition = self.partition(request.topic, request.partition)
        mode = topic.config.mode if request.mode is None else request.mode
        acks = tuple(self._ack(partition, request, mode, buffer) for buffer in request.batches)
        for subscription in self.subscriptions:
            subscription.changed.set()
        if len(acks) == 1 and acks[0].code == InvalidBatch.code:
            raise InvalidBatch(acks[0].message)
        return acks

    def _ack(
        self,
        partition: MemoryPartition,
        request: PublishRequest,
        mode: DeliveryMode,
        buffer: Buffer,
    ) -> Ack:
        topic, number = request.topic, request.partition
        try:
            if mode is DeliveryMode.PERFORMANCE:
                return self._hand_over(topic, number, buffer)
            found = partition.append(buffer)
        except AngariumError as error:
            return Ack(
                mode=mode, topic=topic, partition=number, code=error.code, message=str(error)
            )
        if isinstance(found, Ack):
            return Ack(mode=mode, topic=topic, partition=number, duplicate=True)
        base, end, time = found
        return Ack(
            mode=mode,
            topic=topic,
            partition=number,
            base_offset=base,
            next_offset=end,
            append_time=time,
            term=TERM,
            provisional=mode is DeliveryMode.EVENTUAL,
        )

    def _hand_over(self, topic: str, number: int, buffer: Buffer) -> Ack:
        Batch.parse(buffer)
        self._counters[topic] += 1
        delivery = Delivery(topic=topic, partition=number, batches=(bytes(buffer),), live=True)
        reached = sum(one.hand_over(delivery) for one in self.subscriptions)
        return Ack(
            mode=DeliveryMode.PERFORMANCE,
            topic=topic,
            partition=number,
            id=f"{TERM}-{self._counters[topic]}",
            subscribers=reached,
        )

    async def fetch(self, request: FetchRequest) -> FetchResult:
        self.calls.append(("fetch", request))
        await self._meet_trouble()
        partition = self.partition(request.topic, request.partition)
        if request.offset > partition.end:
            raise OffsetOutOfRange(offset=request.offset, start=0, end=partition.end)
        if request.wait_ms and request.offset == partition.end:
            await asyncio.sleep(request.wait_ms / 1_000)
        batches: list[bytes] = []
        for batch in partition.from_offset(request.offset):
            if batches and sum(map(len, batches)) + len(batch) > request.bytes_max:
                break
            batches.append(batch)
        return FetchResult(
            start_offset=Offset(0),
            end_offset=partition.end,
            batches=tuple(batches),
            expired=expired_among(batches, now=self.now),
        )

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        await self._meet_trouble()
        found = self.partition(topic, partition)
        match start.place:
            case Place.EARLIEST:
                return Offset(0)
            case Place.LATEST:
                return found.end
            case Place.OFFSET:
                return Offset(start.value)
            case Place.TIMESTAMP:
                for buffer in found.batches:
                    batch = Batch.trusted(buffer)
                    if batch.append_time >= start.value:
                        return batch.base_offset
                return found.end

    async def subscribe(self, interests: Sequence[Interest]) -> MemorySubscription:
        await self._meet_trouble()
        subscription = MemorySubscription(self)
        self.subscriptions.append(subscription)
        await subscription.add(interests)
        return subscription

    async def open_producer(self, name: str | None = None) -> Producer:
        await self._meet_trouble()
        if name is not None and name in self._producers:
            number, epoch = self._producers[name]
            self._producers[name] = number, epoch + 1
            return Producer(id=ProducerId(number), epoch=Epoch(epoch + 1))
        number = 7 + len(self._producers)
        self._producers[name or str(number)] = number, 0
        return Producer(id=ProducerId(number), epoch=Epoch(0))

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        self.calls.append(("create_topic", name, partitions, config))
        await self._meet_trouble()
        if not name.isidentifier():
            raise InvalidArgument(f"{name!r} is no name for a topic")
        if name in self.topics:
            raise AlreadyExists(f"there is a topic {name!r} already")
        topic = self.topics[name] = MemoryTopic(len(self.topics) + 1, name, partitions, config)
        return topic.info()

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        self.calls.append(("alter_topic", name, partitions, config))
        await self._meet_trouble()
        topic = self._topic(name)
        more = 0 if partitions is None else partitions - len(topic.partitions)
        topic.partitions += [MemoryPartition() for _ in range(more)]
        topic.config = config or topic.config
        return topic.info()

    async def delete_topic(self, name: str) -> None:
        await self._meet_trouble()
        del self.topics[self._topic(name).name]

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        await self._meet_trouble()
        return tuple(self.topics[name].info() for name in sorted(self.topics))

    async def describe_topic(self, name: str) -> TopicInfo:
        self.calls.append(("describe_topic", name))
        return self._topic(name).info()

    async def cluster_status(self) -> ClusterStatus:
        return ClusterStatus(
            cluster_id="c1",
            node=NodeId(1),
            catalog_leader=NodeId(2),
            catalog_index=Index(41),
            nodes=tuple(
                NodeInfo(
                    id=NodeId(number),
                    addresses={"wire": f"10.0.0.{number}:7400", "grpc": f"10.0.0.{number}:7401"},
                    region="eu",
                    zone=f"z{number}",
                    host=f"h{number}",
                    draining=number == 3,
                    alive=number != 3,
                    leads=number,
                    replicas=3,
                    level_max=1 + number,
                )
                for number in (1, 2, 3)
            ),
            topics=len(self.topics),
            partitions=sum(len(topic.partitions) for topic in self.topics.values()),
            feature_level=1,
            version="0.1.0",
            catalog_in_sync=(NodeId(2),),
        )

    async def drain_node(self, node: NodeId, *, draining: bool) -> None:
        await self._meet_trouble()
        self.calls.append(("drain_node", node, draining))

    async def remove_node(self, node: NodeId) -> None:
        await self._meet_trouble()
        self.calls.append(("remove_node", node))

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        await self._meet_trouble()
        self.calls.append(("transfer_leader", topic, partition, to))

    async def raise_level(self, level: int | None = None) -> int:
        await self._meet_trouble()
        self.calls.append(("raise_level", level))
        return 2 if level is None else level
