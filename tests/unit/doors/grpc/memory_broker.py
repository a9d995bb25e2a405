"""A broker in memory, which keeps the contract's word: what the door's tests stand on."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from tests.memory_log import (
    MemoryLog,
    check_alteration,
    check_batches,
    check_producer,
    check_topic,
)
from tests.unit.doors.grpc.memory_access import MemoryAccess
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
    Producer,
    PublishRequest,
    Start,
    TopicConfig,
    TopicInfo,
)
from angarium.batch import Batch
from angarium.batch.deadlines import expired_among
from angarium.errors import AlreadyExists, NotFound, no_partition
from angarium.ids import Epoch, Index, Micros, NodeId, Offset, ProducerId, Term, TopicId
from angarium.machine.producers import NAMED_FROM
from angarium.modes import DeliveryMode
from angarium.service.admission import check_writable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.errors import AngariumError
    from angarium.ids import Buffer

TERM = Term(3)
CREATED_AT = Micros(1_700_000_000_000_000)


class MemoryTopic:
    def __init__(self, topic_id: int, name: str, partitions: int, config: TopicConfig) -> None:
        self.id, self.name, self.config = TopicId(topic_id), name, config
        self.partitions: list[MemoryLog] = []
        self.grow(partitions)

    def grow(self, partitions: int) -> None:
        for _ in range(len(self.partitions), partitions):
            self.partitions.append(MemoryLog(term=TERM, times_from=CREATED_AT))

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
                    end_offset=Offset(partition.end) if number != 2 else None,
                    in_sync=(NodeId(1), NodeId(3)) if number == 0 else None,
                    trouble="" if number != 2 else "it has 1 of 3 replicas",
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
        found = {
            (one.topic, one.partition): await self._broker.find_offset(
                one.topic, one.partition, one.start
            )
            for one in interests
        }
        self._positions.update(found)
        self.changed.set()

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """What it is subscribed to."""
        return set(self._positions)

    async def drop(self, topic: str, partition: int) -> None:
        self._positions.pop((topic, partition), None)

    async def close(self) -> None:
        self.closed = True
        if self in self._broker.subscriptions:
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
            batches = self._broker.partition(topic, number).read(offset)
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


class MemoryBroker(MemoryGroups, MemoryAccess):
    """Implements `angarium.api.Broker`; `trouble` makes the next calls fail."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: dict[str, MemoryTopic] = {}
        self.requests: list[PublishRequest] = []
        self.subscriptions: list[MemorySubscription] = []
        self.calls: list[tuple[object, ...]] = []
        self.trouble: Exception | None = None
        self.trouble_in: dict[int, Exception] = {}
        """By partition."""
        self.hang: asyncio.Event | None = None
        """While there is one and it is not set, everything but partition 3 waits."""
        self.auto_create = False
        """Whether a publish makes the topic that it lacks."""
        self.cancelled = 0
        self.now = Micros(1)
        """By this clock records expire."""
        self._made = 0
        self._producers: dict[str | None, tuple[int, int]] = {}
        self._counters: defaultdict[str, int] = defaultdict(int)

    def partition(self, topic: str, number: int) -> MemoryLog:
        partitions = self._topic(topic).partitions
        if not 0 <= number < len(partitions):
            raise no_partition(topic, len(partitions), number)
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
        check_writable(request.topic)
        if self.auto_create and request.topic not in self.topics:
            await self.create_topic(request.topic, partitions=1, config=TopicConfig())
        config = self._topic(request.topic).config
        partition = self.partition(request.topic, request.partition)
        mode = config.mode if request.mode is None else request.mode
        batches = check_batches(request.topic, request.batches, config)
        if mode is DeliveryMode.PERFORMANCE:
            acks = [self._hand_over(request.topic, request.partition, one) for one in batches]
        else:
            acks = [partition.append(one) for one in batches]
        for subscription in self.subscriptions:
            subscription.changed.set()
        is_provisional = mode is DeliveryMode.EVENTUAL
        place: Any = {"topic": request.topic, "partition": request.partition, "mode": mode}
        return tuple(replace(one, provisional=is_provisional, **place) for one in acks)

    def _hand_over(self, topic: str, number: int, buffer: Buffer) -> Ack:
        self._counters[topic] += 1
        delivery = Delivery(topic=topic, partition=number, batches=(bytes(buffer),), live=True)
        reached = sum(one.hand_over(delivery) for one in self.subscriptions)
        return Ack(
            mode=DeliveryMode.PERFORMANCE,
            topic=topic,
            partition=number,
            term=TERM,
            id=f"{TERM}-{self._counters[topic]}",
            subscribers=reached,
        )

    async def fetch(self, request: FetchRequest) -> FetchResult:
        self.calls.append(("fetch", request))
        await self._meet_trouble()
        partition = self.partition(request.topic, request.partition)
        return await partition.fetch(request, now=self.now)

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        await self._meet_trouble()
        return self.partition(topic, partition).offset_of(start)

    async def subscribe(self, interests: Sequence[Interest]) -> MemorySubscription:
        await self._meet_trouble()
        subscription = MemorySubscription(self)
        await subscription.add(interests)
        self.subscriptions.append(subscription)
        return subscription

    async def open_producer(self, name: str | None = None) -> Producer:
        await self._meet_trouble()
        check_producer(name)
        if name is not None and name in self._producers:
            number, epoch = self._producers[name]
            self._producers[name] = number, epoch + 1
            return Producer(id=ProducerId(number), epoch=Epoch(epoch + 1))
        number = 7 + len(self._producers) + (0 if name is None else NAMED_FROM)
        self._producers[name or str(number)] = number, 0
        return Producer(id=ProducerId(number), epoch=Epoch(0))

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        self.calls.append(("create_topic", name, partitions, config))
        await self._meet_trouble()
        check_topic(name, partitions, config)
        topic = self.topics.get(name)
        if topic is None:
            self._made += 1
            topic = self.topics[name] = MemoryTopic(self._made, name, partitions, config)
        elif (len(topic.partitions), topic.config) != (partitions, config):
            raise AlreadyExists(f"there is a topic {name!r} already")
        return topic.info()

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        self.calls.append(("alter_topic", name, partitions, config))
        await self._meet_trouble()
        topic = self._topic(name)
        check_alteration(len(topic.partitions), partitions, config)
        topic.grow(partitions or 0)
        topic.config = config or topic.config
        return topic.info()

    async def delete_topic(self, name: str) -> None:
        await self._meet_trouble()
        check_writable(name)
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
