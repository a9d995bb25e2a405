"""A broker that is elsewhere."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from angarium.api import Ack, FetchResult, Producer
from angarium.batch import split
from angarium.client.contract.consuming import RemoteConsumption
from angarium.client.contract.subscribing import RemoteSubscription
from angarium.errors import AngariumError, LimitExceeded, NotLeader, OutcomeUnknown
from angarium.wire import DeadlineExceeded
from angarium.wire.operations import (
    FetchAnswer,
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    OpenProducerHeader,
    Operation,
    PublishAnswer,
    PublishHeader,
    SeekGroupAnswer,
    SeekGroupHeader,
)
from angarium.wire.operations.transactions import PublishSequencedHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import (
        Checkpoint,
        ClusterStatus,
        ConsumeRequest,
        FetchRequest,
        GroupConfig,
        GroupInfo,
        Interest,
        Moved,
        PublishRequest,
        Settled,
        Settlement,
        Start,
        TopicConfig,
        TopicInfo,
    )
    from angarium.api.transactions import SequencedPublish
    from angarium.client.client import Client
    from angarium.client.reach import Reach
    from angarium.ids import NodeId, Offset
    from angarium.wire import Connection, Frame, Header


class RemoteBroker:
    """Implements `api.Broker` and `api.GroupBroker` for a cluster that is reached over the wire."""

    def __init__(self, client: Client) -> None:
        """Use the connections of `client`, which stays open as long as the broker is used."""
        self._client = client

    @property
    def _reach(self) -> Reach:
        return self._client._reach

    # --- records ----------------------------------------------------------------------------

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Have batches stored by the partition's leader; repeated only if nothing had happened."""
        frame = await self._send(
            Operation.PUBLISH,
            PublishHeader(request.topic, request.partition, request.mode),
            request.batches,
            place=(request.topic, request.partition),
        )
        return frame.read(PublishAnswer).acks

    async def publish_sequenced(self, request: SequencedPublish) -> Ack:
        """Have batches stored unless that sequence, or a higher one, has been."""
        header = PublishSequencedHeader(
            request.producer, request.epoch, request.sequence, request.topic, request.partition
        )
        frame = await self._send(
            Operation.PUBLISH_SEQUENCED,
            header,
            request.batches,
            place=(request.topic, request.partition),
        )
        return frame.read(Ack)

    async def _send(
        self,
        operation: Operation,
        header: Header,
        payload: Sequence[bytes | bytearray | memoryview],
        *,
        place: tuple[str, int],
    ) -> Frame:
        reach = self._reach
        loop = asyncio.get_running_loop()
        deadline = loop.time() + reach.settings.request_timeout_s
        failures = 0
        while True:
            connection: Connection | None = None
            try:
                connection = await reach.routes.connection_for(*place)
                return await connection.request(
                    operation, header, payload, timeout_s=max(0.001, deadline - loop.time())
                )
            except AngariumError as error:
                is_unknown = isinstance(error, OutcomeUnknown | DeadlineExceeded | LimitExceeded)
                if not error.retriable or is_unknown:
                    raise
                hint = error.leader if isinstance(error, NotLeader) else None
                reach.routes.learn_leader(*place, hint)
                pause_s = reach.settings.backoff.pause_s(failures, random.random())
                failures += 1
                if loop.time() + pause_s >= deadline:
                    raise
            await asyncio.sleep(pause_s)

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches."""
        frame = await self._reach.calls.ask(
            Operation.FETCH,
            FetchHeader(
                request.topic,
                request.partition,
                request.offset,
                request.bytes_max,
                request.wait_ms,
                request.fresh,
            ),
            partition=(request.topic, request.partition),
            wait_s=request.wait_ms / 1_000,
        )
        answer = frame.read(FetchAnswer)
        return FetchResult(
            start_offset=answer.start_offset,
            end_offset=answer.end_offset,
            batches=tuple(split(frame.payload)),
            expired=answer.expired,
        )

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""
        frame = await self._reach.calls.ask(
            Operation.FIND_OFFSET,
            FindOffsetHeader(topic, partition, start),
            partition=(topic, partition),
        )
        return frame.read(FindOffsetAnswer).offset

    async def subscribe(self, interests: Sequence[Interest]) -> RemoteSubscription:
        """Begin to deliver partitions, from one of the nodes; it does not resume by itself."""
        return RemoteSubscription(await self._reach.routes.any_connection(), interests)

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a new identity, or with a name the same one in a new epoch."""
        header = OpenProducerHeader(name)
        return (await self._reach.calls.ask(Operation.OPEN_PRODUCER, header)).read(Producer)

    # --- groups -----------------------------------------------------------------------------

    async def consume(self, request: ConsumeRequest) -> RemoteConsumption:
        """Take part in a group, through one of the nodes."""
        connection = await self._reach.routes.any_connection()
        return await RemoteConsumption.begun(connection, request)

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle records for a member that is connected elsewhere."""
        return await self._client.settle(group, member, settlements)

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        """Return all groups."""
        return await self._client.list_groups()

    async def describe_group(self, group: str) -> GroupInfo:
        """Return one group."""
        return await self._client.describe_group(group)

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        """Give a group other settings."""
        return await self._client.alter_group(group, config)

    async def seek_group(
        self,
        group: str,
        *,
        topic: str | None,
        partition: int | None,
        start: Start,
        dry_run: bool,
    ) -> tuple[Moved, ...]:
        """Move a group."""
        header = SeekGroupHeader(group, topic, partition, start, dry_run)
        frame = await self._reach.calls.ask(Operation.SEEK_GROUP, header)
        return frame.unpack(SeekGroupAnswer).moved

    async def pause_group(self, group: str, *, paused: bool) -> None:
        """Hand nothing more out, or go on."""
        await self._client.pause_group(group, paused=paused)

    async def delete_group(self, group: str, *, topic: str | None) -> None:
        """Forget a group."""
        await self._client.delete_group(group, topic=topic)

    async def report_checkpoints(self, group: str, checkpoints: Sequence[Checkpoint]) -> None:
        """Say how far a group of kind CHECKPOINT has come."""
        await self._client.report_checkpoints(group, checkpoints)

    # --- topics and the cluster -------------------------------------------------------------

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic."""
        return await self._client.create_topic(name, partitions=partitions, config=config)

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""
        return await self._client.alter_topic(name, partitions=partitions, config=config)

    async def delete_topic(self, name: str) -> None:
        """Remove a topic."""
        await self._client.delete_topic(name)

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics."""
        return await self._client.list_topics()

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic."""
        return await self._client.describe_topic(name)

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster, as one of its nodes sees it."""
        return await self._reach.metadata.status()

    async def drain_node(self, node: NodeId, *, draining: bool) -> None:
        """Move everything away from a node, or call that off."""
        await self._client.drain_node(node, draining=draining)

    async def remove_node(self, node: NodeId) -> None:
        """Forget a node."""
        await self._client.remove_node(node)

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        """Ask a leader to hand over."""
        await self._client.transfer_leader(topic, partition, to)

    async def raise_level(self, level: int | None = None) -> int:
        """Let the cluster work at a higher feature level."""
        return await self._client.raise_level(level)
