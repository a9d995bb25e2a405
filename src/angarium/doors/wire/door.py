"""The wire door: frames in, the contract behind, frames out. Translation only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from angarium.api import Broker, FetchRequest, Interest, OffsetBroker, PublishRequest
from angarium.batch import split
from angarium.doors.wire.groups import GroupsDoor
from angarium.doors.wire.members import MembersDoor
from angarium.doors.wire.transactions import TransactionsDoor
from angarium.errors import AngariumError
from angarium.node.timekeeping import wall_clock
from angarium.wire import Handlers, Role, roomy
from angarium.wire.operations import (
    AlterTopicHeader,
    ClockAnswer,
    CreateTopicHeader,
    Delivered,
    DrainNodeHeader,
    Drop,
    FetchAnswer,
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    JoinAnswer,
    JoinHeader,
    LevelAnswer,
    OpenProducerHeader,
    Operation,
    PartitionsAnswer,
    PartitionsHeader,
    PublishAnswer,
    PublishHeader,
    RaiseLevelHeader,
    ReadinessAnswer,
    RemoveNodeHeader,
    ReserveAnswer,
    ReserveHeader,
    SameFolderHeader,
    TopicHeader,
    TopicsAnswer,
    TransferLeaderHeader,
    Want,
    Wants,
    Wish,
)
from angarium.wire.raft_codec import RAFT_OPERATION

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from angarium.api import Ack, Subscription
    from angarium.ids import RaftGroupId
    from angarium.node.node import Node
    from angarium.service.dispatching import Dispatcher
    from angarium.service.groups.group_calls import GroupCalls
    from angarium.service.transactions.transaction_calls import TransactionCalls
    from angarium.wire import Connection, Request, Stream
    from angarium.wire.handlers import RequestHandler, StreamHandler
    from angarium.wire.operations import PartitionSeen


class PromptBroker(Broker, OffsetBroker, Protocol):
    """A broker in the same process: it answers most publishes without a task for each."""

    transactions: TransactionCalls
    groups: GroupCalls

    def begin_publish(
        self, request: PublishRequest, answer: Callable[[tuple[Ack, ...] | AngariumError], None]
    ) -> bool:
        """Take a publish and call `answer` later; False, with nothing done, if it has to wait."""

    async def join(self, wish: JoinHeader) -> JoinAnswer:
        """Take a node into the cluster; return whom it will meet there."""

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as far as this node knows; 0 if there is none."""

    def partitions_here(self, groups: Iterable[RaftGroupId]) -> tuple[PartitionSeen, ...]:
        """Return what this node's own replicas know."""


class WireDoor:
    """Serves clients and other nodes on the wire port."""

    def __init__(self, node: Node, broker: PromptBroker, dispatcher: Dispatcher) -> None:
        self._node = node
        self._broker = broker
        self._dispatcher = dispatcher
        transactions = TransactionsDoor(broker.transactions, broker.transactions.participants)
        groups = GroupsDoor(broker.groups)
        members = MembersDoor(broker.groups.host, broker.groups.wishes, broker.groups.looking)
        requests: dict[Operation, RequestHandler] = {
            **transactions.for_clients(),
            **groups.requests(),
            Operation.PUBLISH: self._publish,
            Operation.FETCH: self._fetch,
            Operation.FIND_OFFSET: self._find_offset,
            Operation.OPEN_PRODUCER: self._open_producer,
            Operation.RESERVE: self._reserve,
            Operation.CREATE_TOPIC: self._create_topic,
            Operation.ALTER_TOPIC: self._alter_topic,
            Operation.DELETE_TOPIC: self._delete_topic,
            Operation.LIST_TOPICS: self._list_topics,
            Operation.DESCRIBE_TOPIC: self._describe_topic,
            Operation.CLUSTER_STATUS: self._cluster_status,
            Operation.DRAIN_NODE: self._drain_node,
            Operation.REMOVE_NODE: self._remove_node,
            Operation.TRANSFER_LEADER: self._transfer_leader,
            Operation.RAISE_LEVEL: self._raise_level,
            Operation.JOIN: self._join,
            Operation.SAME_FOLDER: self._same_folder,
        }
        streams: dict[Operation, StreamHandler] = {
            Operation.SUBSCRIBE: self._subscribe,
            **groups.streams(),
        }
        for_peers = {**requests, **transactions.for_peers(), **members.requests()}
        self._for_clients = Handlers(
            requests={int(key): one for key, one in requests.items()},
            streams={int(key): one for key, one in streams.items()},
        )
        self._for_peers = Handlers(
            messages={
                RAFT_OPERATION: node.take_raft,
                int(Operation.PEER): node.take_peer_message,
                int(Operation.DISPATCH): dispatcher.hear_dispatch,
                int(Operation.INTERESTS): dispatcher.hear_interests,
            },
            requests={
                **{int(key): one for key, one in for_peers.items()},
                int(Operation.CATALOG): self._catalog,
                int(Operation.PARTITIONS): self._partitions,
                int(Operation.READINESS): self._readiness,
                int(Operation.CLOCK): self._clock,
            },
            streams={int(key): one for key, one in (streams | members.streams()).items()},
            on_closed=node.admission.left,
        )

    def welcome(self, connection: Connection) -> Handlers:
        """Return what whoever connected may do here; raises why nothing at all."""
        hello = connection.peer.hello
        if hello.role not in {Role.PEER, Role.PEER_BULK}:
            return self._for_clients
        if not self._node.is_open:
            return Handlers()  # it does not know yet who it is, nor who the others are
        self._node.levels.check_peer(hello)
        self._node.admission.admit(connection)
        return self._for_peers

    # --- records ----------------------------------------------------------------------------

    def _publish(self, request: Request) -> Coroutine[None, None, None] | None:
        header = request.read(PublishHeader)
        publish = PublishRequest(
            topic=header.topic,
            partition=header.partition,
            batches=tuple(split(request.payload)),
            mode=header.mode,
        )

        def answer(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                request.fail(outcome)
            else:
                request.answer(PublishAnswer(outcome, self._broker.partition_count(header.topic)))

        if self._broker.begin_publish(publish, answer):
            return None
        return self._publish_elsewhere(request, publish)

    async def _publish_elsewhere(self, request: Request, publish: PublishRequest) -> None:
        acks = await self._broker.publish(publish)
        request.answer(PublishAnswer(acks, self._broker.partition_count(publish.topic)))

    async def _fetch(self, request: Request) -> None:
        header = request.read(FetchHeader)
        result = await self._broker.fetch(
            FetchRequest(
                topic=header.topic,
                partition=header.partition,
                offset=header.offset,
                bytes_max=header.bytes_max,
                wait_ms=header.wait_ms,
                fresh=header.fresh,
            )
        )
        answer = FetchAnswer(result.start_offset, result.end_offset, result.expired)
        request.answer(answer, result.batches)

    async def _find_offset(self, request: Request) -> None:
        header = request.read(FindOffsetHeader)
        offset = await self._broker.find_offset(header.topic, header.partition, header.start)
        request.answer(FindOffsetAnswer(offset))

    async def _open_producer(self, request: Request) -> None:
        request.answer(await self._broker.open_producer(request.read(OpenProducerHeader).name))

    async def _reserve(self, request: Request) -> None:
        header = request.read(ReserveHeader)
        offset = await self._broker.reserve(header.topic, header.partition, header.count)
        request.answer(ReserveAnswer(offset))

    # --- subscriptions ----------------------------------------------------------------------

    async def _subscribe(self, stream: Stream) -> None:
        numbers: dict[tuple[str, int], int] = {}
        subscription = await self._broker.subscribe(
            [_interest(want, numbers) for want in stream.opening.read(Wants).wants]
        )
        wishes = asyncio.create_task(self._take_wishes(stream, subscription, numbers))
        try:
            async for delivery in subscription:
                number = numbers.get((delivery.topic, delivery.partition))
                if number is not None:
                    told = Delivered(number, delivery.from_offset, delivery.live, delivery.expired)
                    await stream.send(told, delivery.batches)
        finally:
            wishes.cancel()
            await subscription.close()

    async def _take_wishes(
        self, stream: Stream, subscription: Subscription, numbers: dict[tuple[str, int], int]
    ) -> None:
        try:
            async for frame in stream:
                wish: Wish = frame.read(Wish)  # type: ignore[arg-type]
                if isinstance(wish, Want):
                    await subscription.add([_interest(wish, numbers)])
                elif isinstance(wish, Drop):
                    for place in [key for key, number in numbers.items() if number == wish.number]:
                        del numbers[place]
                        await subscription.drop(*place)
        except AngariumError as error:
            stream.cancel(error)
        await subscription.close()

    # --- topics -----------------------------------------------------------------------------

    async def _create_topic(self, request: Request) -> None:
        header = request.read(CreateTopicHeader)
        info = await self._broker.create_topic(
            header.name, partitions=header.partitions, config=header.config
        )
        request.answer(*roomy(info))

    async def _alter_topic(self, request: Request) -> None:
        header = request.read(AlterTopicHeader)
        info = await self._broker.alter_topic(
            header.name, partitions=header.partitions, config=header.config
        )
        request.answer(*roomy(info))

    async def _delete_topic(self, request: Request) -> None:
        await self._broker.delete_topic(request.read(TopicHeader).name)
        request.answer()

    async def _list_topics(self, request: Request) -> None:
        request.answer(*roomy(TopicsAnswer(await self._broker.list_topics())))

    async def _describe_topic(self, request: Request) -> None:
        info = await self._broker.describe_topic(request.read(TopicHeader).name)
        # Clients ask this behind a subscription, over the same connection, to know that it is in
        # place: on every node, then.
        await self._dispatcher.settled()
        request.answer(*roomy(info))

    # --- the cluster ------------------------------------------------------------------------

    async def _cluster_status(self, request: Request) -> None:
        request.answer(await self._broker.cluster_status())

    async def _drain_node(self, request: Request) -> None:
        header = request.read(DrainNodeHeader)
        await self._broker.drain_node(header.node, draining=header.draining)
        request.answer()

    async def _remove_node(self, request: Request) -> None:
        await self._broker.remove_node(request.read(RemoveNodeHeader).node)
        request.answer()

    async def _transfer_leader(self, request: Request) -> None:
        header = request.read(TransferLeaderHeader)
        await self._broker.transfer_leader(header.topic, header.partition, header.to)
        request.answer()

    async def _raise_level(self, request: Request) -> None:
        level = await self._broker.raise_level(request.read(RaiseLevelHeader).level)
        request.answer(LevelAnswer(level))

    async def _join(self, request: Request) -> None:
        request.answer(await self._broker.join(request.read(JoinHeader)))

    async def _same_folder(self, request: Request) -> None:
        request.answer(self._node.rivals.prove(request.read(SameFolderHeader).nonce))

    async def _readiness(self, request: Request) -> None:
        node = self._node
        request.answer(ReadinessAnswer(node.readiness.reasons(), node.durable_end))

    async def _partitions(self, request: Request) -> None:
        groups = request.read(PartitionsHeader).groups
        request.answer(*roomy(PartitionsAnswer(self._broker.partitions_here(groups))))

    def _clock(self, request: Request) -> None:
        # Now, and as it is: whoever asks finds out by itself whether it is right.
        request.answer(ClockAnswer(wall_clock()))

    async def _catalog(self, request: Request) -> None:
        request.answer(await self._node.catalog.serve(request.payload))


def _interest(want: Want, numbers: dict[tuple[str, int], int]) -> Interest:
    numbers[want.topic, want.partition] = want.number
    return Interest(topic=want.topic, partition=want.partition, start=want.start)
