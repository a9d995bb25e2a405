"""A broker in memory, spoken to over real sockets: a few nodes that share one state, and faults.

What a partition takes is judged by the rules of a real one (`memory_log`), so a client that gets
exactly-once wrong is found out here. Faults (`fake_faults`) are planned one by one
with `Cluster.plan`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from tests.component.client.fake_partition import Partition, Topic
from tests.memory_log import check_alteration, check_batches, check_producer, check_topic

from angarium.api import (
    Ack,
    ClusterStatus,
    FetchRequest,
    NodeInfo,
    PartitionInfo,
    Producer,
    TopicConfig,
    TopicInfo,
)
from angarium.batch import Batch, split
from angarium.batch.deadlines import expired_among
from angarium.errors import (
    AlreadyExists,
    LayoutChanged,
    NotFound,
    NotLeader,
    Unauthenticated,
    no_partition,
)
from angarium.ids import Epoch, Index, Micros, NodeId, Offset, ProducerId, Term, TopicId
from angarium.machine.producers import NAMED_FROM
from angarium.modes import DeliveryMode
from angarium.node.release import LEVEL_MAX
from angarium.node.timekeeping import wall_clock
from angarium.service.admission import check_writable
from angarium.wire import Handlers, Hello, Role, Server, roomy
from angarium.wire.handshake import LEVEL_FEATURE
from angarium.wire.operations import (
    AlterTopicHeader,
    CreateTopicHeader,
    Delivered,
    Drop,
    Ended,
    FetchAnswer,
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    OpenProducerHeader,
    Operation,
    PublishAnswer,
    PublishHeader,
    TopicHeader,
    TopicsAnswer,
    Want,
    Wants,
    Wish,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from tests.component.client.fake_faults import Fault

    from angarium.errors import AngariumError
    from angarium.ids import Buffer
    from angarium.wire import Request, Stream

LOCALHOST = "127.0.0.1"


class Node:
    """One listening node."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.id = number
        self.server: Server | None = None
        self.port = 0
        self.requests: list[int] = []
        """The operations asked for, in order."""

    async def start(self) -> None:
        requests = {
            Operation.PUBLISH: self._publish,
            Operation.FETCH: self._fetch,
            Operation.FIND_OFFSET: self._find_offset,
            Operation.OPEN_PRODUCER: self._open_producer,
            Operation.CREATE_TOPIC: self._create_topic,
            Operation.ALTER_TOPIC: self._alter_topic,
            Operation.DELETE_TOPIC: self._delete_topic,
            Operation.LIST_TOPICS: self._list_topics,
            Operation.DESCRIBE_TOPIC: self._describe_topic,
            Operation.CLUSTER_STATUS: self._cluster_status,
            Operation.WHOAMI: self._whoami,
        }
        handlers = Handlers(
            requests={int(one): self._with_faults(handler) for one, handler in requests.items()},
            streams={int(Operation.SUBSCRIBE): self._subscribe, **self.cluster.stream_handlers},
        )
        self.server = await Server.listen(
            host=LOCALHOST,
            port=self.port,
            greeting=lambda: Hello(
                role=Role.PEER,
                cluster="fake",
                node=self.id,
                features={LEVEL_FEATURE: self.cluster.level},
            ),
            welcome=lambda _: handlers,
        )
        self.port = self.server.port

    async def stop(self) -> None:
        """Die: everything under way is cut."""
        if self.server is not None:
            self.cut()
            server, self.server = self.server, None
            await server.drain(timeout_s=0.2)

    def cut(self) -> None:
        """Cut every connection, without a word."""
        assert self.server is not None
        for connection in list(self.server.connections):
            connection._abort()

    def _with_faults(self, handler: Callable[[Request], Awaitable[None]]) -> Any:
        async def serve(request: Request) -> None:
            self.requests.append(request.operation)
            plan = self.cluster.plans.get(request.operation)
            if plan:
                fault = plan.popleft()
                if fault is not None and await fault(self, request):
                    return
            await handler(request)

        return serve

    # --- records --------------------------------------------------------------------------------

    async def _publish(self, request: Request) -> None:
        header = request.read(PublishHeader)
        check_writable(header.topic)
        if self.cluster.auto_create and header.topic not in self.cluster.topics:
            self.cluster.add_topic(header.topic)
        topic = self.cluster.topic(header.topic)
        partition = self.cluster.partition(header.topic, header.partition)
        if partition.leader is None or (partition.leader != self.id and not self.cluster.forwards):
            raise NotLeader(leader=partition.leader)
        batches = check_batches(topic.name, split(request.payload), topic.config)
        self.cluster.batches_published += len(batches)
        if self.cluster.latency_s:
            await asyncio.sleep(self.cluster.latency_s)
        mode = topic.config.mode if header.mode is None else header.mode
        acks = await self.cluster.store(topic, header, batches, mode)
        request.answer(PublishAnswer(acks, len(topic.partitions)))

    async def _fetch(self, request: Request) -> None:
        header = request.read(FetchHeader)
        partition = self.cluster.partition(header.topic, header.partition)
        if header.fresh and partition.leader != self.id:
            raise NotLeader(leader=partition.leader)
        asked = FetchRequest(
            topic=header.topic,
            partition=header.partition,
            offset=header.offset,
            bytes_max=header.bytes_max,
            wait_ms=header.wait_ms,
        )
        found = await partition.fetch(asked, now=wall_clock())
        answer = FetchAnswer(found.start_offset, found.end_offset, found.expired)
        request.answer(answer, found.batches)

    async def _find_offset(self, request: Request) -> None:
        header = request.read(FindOffsetHeader)
        partition = self.cluster.partition(header.topic, header.partition)
        if partition.leader is None:
            raise NotLeader(partition.trouble or "an election")
        request.answer(FindOffsetAnswer(partition.offset_of(header.start)))

    async def _open_producer(self, request: Request) -> None:
        name = request.read(OpenProducerHeader).name
        check_producer(name)
        request.answer(self.cluster.open_producer(name))

    async def _subscribe(self, stream: Stream) -> None:
        self.cluster.streams.append(stream)
        reading: dict[int, asyncio.Task[None]] = {}
        placed: dict[int, Partition] = {}

        async def want(one: Want) -> None:
            partition = self.cluster.partition(one.topic, one.partition)
            if partition.leader is None:
                await stream.send(Ended(one.number, NotLeader.code, partition.trouble))
                return
            offset = partition.offset_of(one.start)
            placed[one.number] = partition
            partition.listeners.append((stream, one.number))
            reading[one.number] = asyncio.create_task(
                self._deliver(stream, one.number, partition, offset)
            )

        def drop(number: int) -> None:
            reading.pop(number).cancel()
            listeners = placed.pop(number).listeners
            if (stream, number) in listeners:
                listeners.remove((stream, number))

        try:
            for one in stream.opening.read(Wants).wants:
                await want(one)
            async for frame in stream:
                wish: Any = frame.read(Wish)  # type: ignore[arg-type]
                if isinstance(wish, Want):
                    await want(wish)
                elif isinstance(wish, Drop) and wish.number in reading:
                    drop(wish.number)
        finally:
            for number in list(reading):
                drop(number)

    async def _deliver(
        self, stream: Stream, number: int, partition: Partition, offset: int
    ) -> None:
        while True:
            changed = partition.changed
            found = partition.read(offset, self.cluster.delivery_bytes)
            if not found:
                await changed.wait()
                continue
            # As a node that goes back to a batch's start would: the first may begin below.
            expired = expired_among(found, now=wall_clock())
            await stream.send(Delivered(number, Offset(offset), False, expired), found)
            offset = Batch.trusted(found[-1]).next_offset

    # --- topics and nodes -------------------------------------------------------------------------

    async def _create_topic(self, request: Request) -> None:
        header = request.read(CreateTopicHeader)
        check_topic(header.name, header.partitions, header.config)
        topic = self.cluster.topics.get(header.name)
        if topic is None:
            topic = self.cluster.add_topic(
                header.name, partitions=header.partitions, config=header.config
            )
        elif (len(topic.partitions), topic.config) != (header.partitions, header.config):
            raise AlreadyExists(f"there is a topic {header.name!r}")
        request.answer(self.cluster.describe(topic))

    async def _alter_topic(self, request: Request) -> None:
        header = request.read(AlterTopicHeader)
        topic = self.cluster.topic(header.name)
        check_alteration(len(topic.partitions), header.partitions, header.config)
        for _ in range(len(topic.partitions), header.partitions or 0):
            topic.partitions.append(Partition(leader=self.cluster.next_leader()))
        topic.config = header.config or topic.config
        request.answer(self.cluster.describe(topic))

    async def _delete_topic(self, request: Request) -> None:
        name = request.read(TopicHeader).name
        check_writable(name)
        self.cluster.topic(name)
        del self.cluster.topics[name]

    async def _list_topics(self, request: Request) -> None:
        topics = [self.cluster.describe(one) for _, one in sorted(self.cluster.topics.items())]
        request.answer(*roomy(TopicsAnswer(tuple(topics))))

    async def _describe_topic(self, request: Request) -> None:
        topic = self.cluster.topic(request.read(TopicHeader).name)
        request.answer(*roomy(self.cluster.describe(topic)))

    async def _whoami(self, request: Request) -> None:
        await asyncio.sleep(self.cluster.distances_s.get(self.id, 0.0))
        raise Unauthenticated("nobody is asked here")

    async def _cluster_status(self, request: Request) -> None:
        request.answer(self.cluster.status(self))


class Cluster:
    """The nodes and the one state that they share."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.topics: dict[str, Topic] = {}
        self.plans: dict[int, deque[Fault | None]] = {}
        self.forwards = True
        self.level = LEVEL_MAX
        """The highest feature level that its nodes know."""
        self.regions: dict[int, str] = {}
        """Where nodes are, by their numbers."""
        self.distances_s: dict[int, float] = {}
        """How long their answers to a client that measures take."""
        self.auto_create = False
        self.latency_s = 0.0
        self.delivery_bytes = 1 << 20
        self.batches_published = 0
        self.streams: list[Stream] = []
        self.stream_handlers: dict[int, Callable[[Stream], Coroutine[Any, Any, None]]] = {}
        """Further streams that the nodes serve; to be set before they start."""
        self._passed = count(1)
        self._producer = 0
        self._names: dict[str, Producer] = {}
        self._topics_made = 0

    @property
    def addresses(self) -> list[str]:
        return [f"{LOCALHOST}:{node.port}" for node in self.nodes]

    def plan(self, operation: Operation, *faults: Fault | None) -> None:
        """Let the next requests of this kind meet these faults, one each; None: none."""
        self.plans.setdefault(int(operation), deque()).extend(faults)

    def node(self, number: int) -> Node:
        return self.nodes[number - 1]

    def next_leader(self) -> int:
        made = sum(len(topic.partitions) for topic in self.topics.values())
        return made % len(self.nodes) + 1

    def add_topic(
        self, name: str, *, partitions: int = 1, config: TopicConfig | None = None
    ) -> Topic:
        self._topics_made += 1
        topic = Topic(self._topics_made, name, [], config or TopicConfig())
        self.topics[name] = topic
        topic.partitions += [Partition(leader=1 + at % len(self.nodes)) for at in range(partitions)]
        return topic

    async def end(self, name: str, number: int, error: AngariumError) -> None:
        """Have every stream that reads a partition told that it ends there."""
        for stream, listening in self.partition(name, number).listeners:
            await stream.send(Ended(listening, error.code, str(error)))
        self.partition(name, number).listeners.clear()

    def topic(self, name: str) -> Topic:
        if name not in self.topics:
            raise NotFound(f"there is no topic {name!r}")
        return self.topics[name]

    def partition(self, name: str, number: int) -> Partition:
        partitions = self.topic(name).partitions
        if not 0 <= number < len(partitions):
            raise no_partition(name, len(partitions), number)
        return partitions[number]

    def open_producer(self, name: str | None) -> Producer:
        if name is not None and name in self._names:
            known = self._names[name]
            again = Producer(id=known.id, epoch=Epoch(known.epoch + 1))
        else:
            self._producer += 1
            base = 0 if name is None else NAMED_FROM
            again = Producer(id=ProducerId(base + self._producer), epoch=Epoch(0))
        if name is not None:
            self._names[name] = again
        return again

    async def store(
        self, topic: Topic, header: PublishHeader, batches: Sequence[Buffer], mode: DeliveryMode
    ) -> tuple[Ack, ...]:
        partition = topic.partitions[header.partition]
        place: Any = {"mode": mode, "topic": topic.name, "partition": header.partition}
        if mode is DeliveryMode.PERFORMANCE:
            for stream, number in list(partition.listeners):
                await stream.send(Delivered(number, live=True), batches)
            reached = len(partition.listeners)
            term = Term(partition.term)
            return tuple(
                Ack(**place, term=term, id=f"{term}.{next(self._passed)}", subscribers=reached)
                for _ in batches
            )
        acks = []
        for one in batches:
            is_outdated = header.layout is not None and header.layout < partition.fenced
            # As at a node: only what is not there already is refused.
            ack = partition.duplicate(one) if is_outdated else partition.append(one)
            if ack is None:
                ack = Ack(**place, code=LayoutChanged.code, message="dealt by an older layout")
            acks.append(replace(ack, **place, provisional=mode is DeliveryMode.EVENTUAL))
        return tuple(acks)

    def describe(self, topic: Topic) -> TopicInfo:
        return TopicInfo(
            id=TopicId(topic.id),
            name=topic.name,
            config=topic.config,
            created_at=Micros(1),
            layouts=topic.layouts,
            layout=topic.layout,
            partitions=tuple(
                PartitionInfo(
                    number=number,
                    replicas=tuple(NodeId(node.id) for node in self.nodes),
                    leader=None if one.leader is None else NodeId(one.leader),
                    start_offset=Offset(one.start),
                    end_offset=Offset(one.end),
                    home=_home_of(topic.config, number),
                    trouble="" if one.leader else one.trouble,
                )
                for number, one in enumerate(topic.partitions)
            ),
        )

    def status(self, asked: Node) -> ClusterStatus:
        return ClusterStatus(
            cluster_id="fake",
            node=NodeId(asked.id),
            catalog_leader=NodeId(1),
            catalog_index=Index(1),
            nodes=tuple(
                NodeInfo(
                    id=NodeId(node.id),
                    addresses={"wire": f"{LOCALHOST}:{node.port}"},
                    region=self.regions.get(node.id, ""),
                )
                for node in self.nodes
            ),
            topics=len(self.topics),
            partitions=sum(len(topic.partitions) for topic in self.topics.values()),
            feature_level=1,
            version="fake",
        )


def _home_of(config: TopicConfig, number: int) -> str:
    is_homed = config.placement == "homed"
    return config.regions[number % len(config.regions)] if is_homed else ""


@asynccontextmanager
async def fake_cluster(
    nodes: int = 1, prepare: Callable[[Cluster], None] | None = None
) -> AsyncIterator[Cluster]:
    """A cluster of `nodes` on free ports."""
    cluster = Cluster()
    if prepare is not None:
        prepare(cluster)
    cluster.nodes = [Node(cluster, number + 1) for number in range(nodes)]
    for node in cluster.nodes:
        await node.start()
    try:
        yield cluster
    finally:
        for node in cluster.nodes:
            await node.stop()
