"""The Python client over our own frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Interest, Start, StartAt
from angarium.batch import Batch
from angarium.bench.drivers.port import Lent, Received
from angarium.client import Client
from angarium.client.contract.subscribing import RemoteSubscription
from angarium.ids import Offset, TopicPartition
from angarium.security.tls import client_tls
from angarium.wire import Hello, Role, dial
from angarium.wire.errors import StreamCancelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Delivery
    from angarium.client import Consumer, GroupBatch, Subscription
    from angarium.modes import DeliveryMode
    from angarium.wire import Connection


class WireDriver:
    """Clients of one cluster."""

    def __init__(self, servers: str, mode: DeliveryMode, *, read: str | None = None) -> None:
        """Read from the node at `read`, or, without one, as the client does."""
        self._servers = servers.split(",")
        self._mode = mode
        self._read = read

    async def publisher(self) -> WirePublisher:
        """Return a client of its own."""
        client = Client(*self._servers)
        await client.connect()
        return WirePublisher(client, self._mode)

    async def subscriber(
        self, partitions: Sequence[TopicPartition], *, from_start: bool
    ) -> WireSubscriber | OneNodeSubscriber:
        """Return a subscription, on a client of its own or at the node that was named."""
        if self._read is not None:
            return await OneNodeSubscriber.begun(self._read, partitions, from_start=from_start)
        client = Client(*self._servers)
        topics = sorted({partition.topic for partition in partitions})
        subscription = client.subscribe(topics, start="earliest" if from_start else "live")
        await subscription.begin()
        return WireSubscriber(client, subscription)

    async def member(self, group: str, topics: Sequence[str], *, credit: int) -> WireMember:
        """Return a consumer, on a client of its own, which finds its way by itself."""
        client = Client(*([self._read] if self._read is not None else self._servers))
        consumer = client.group(group).consume(*topics, credit=credit)
        await consumer.begin()
        return WireMember(client, consumer)

    async def close(self) -> None:
        """Nothing is shared."""


class WirePublisher:
    """Publishes through one client."""

    def __init__(self, client: Client, mode: DeliveryMode) -> None:
        self._client = client
        self._mode = mode

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Publish records and wait for their acknowledgement."""
        topic, number = partition
        if len(values) == 1:
            await self._client.publish(topic, values[0], partition=number, mode=self._mode)
        else:
            await self._client.publish_batch(topic, values, partition=number, mode=self._mode)

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()


class WireSubscriber:
    """Receives batch by batch."""

    def __init__(self, client: Client, subscription: Subscription) -> None:
        self._client = client
        self._subscription = subscription

    async def receive(self) -> Received | None:
        """Return the next batch's records."""
        batch = await self._subscription.next_batch()
        if batch is None:
            return None
        return Received(TopicPartition(batch.topic, batch.partition), batch.values())

    async def close(self) -> None:
        """Stop receiving."""
        await self._client.close()


class WireMember:
    """Consumes through the Python client."""

    def __init__(self, client: Client, consumer: Consumer) -> None:
        self._client = client
        self._consumer = consumer

    async def receive(self) -> Lent | None:
        """Return what was handed over next."""
        batch = await self._consumer.next_batch()
        if batch is None:
            return None
        partition = TopicPartition(batch.topic, batch.partition)
        return Lent(partition, batch.values(), batch.offsets(), batch)

    async def acknowledge(self, lent: Lent) -> None:
        """Say that these are done with."""
        batch: GroupBatch = lent.source
        batch.ack_nowait(None if len(lent.values) == len(batch) else lent.offsets)

    async def flush(self) -> None:
        """Wait until everything that was said has been answered."""
        await self._consumer.flush()

    async def vanish(self) -> int:
        """End without a word."""
        return await self._consumer.vanish()

    async def close(self) -> None:
        """Leave."""
        await self._client.close()


class OneNodeSubscriber:
    """Receives everything from one node, leader or not."""

    def __init__(self, connection: Connection, subscription: RemoteSubscription) -> None:
        """Not for callers: use `begun`."""
        self._connection = connection
        self._subscription = subscription
        self._coming = aiter(subscription)
        self._arrived: list[Received] = []

    @classmethod
    async def begun(
        cls, address: str, partitions: Sequence[TopicPartition], *, from_start: bool
    ) -> OneNodeSubscriber:
        """Subscribe to these partitions at the node that listens at `address`."""
        host, _, port = address.rpartition(":")
        connection = await dial(
            host=host, port=int(port), hello=Hello(role=Role.CLIENT), tls=client_tls()
        )
        start = Start(StartAt.EARLIEST if from_start else StartAt.LATEST)
        interests = [
            Interest(topic=one.topic, partition=one.partition, start=start) for one in partitions
        ]
        return cls(connection, RemoteSubscription(connection, interests))

    async def receive(self) -> Received | None:
        """Return the next batch's records."""
        while not self._arrived:
            try:
                self._arrived = _received(await anext(self._coming))
            except (StopAsyncIteration, StreamCancelled):
                return None  # nothing more comes, or `close` was called
        return self._arrived.pop(0)

    async def close(self) -> None:
        """Stop receiving."""
        await self._subscription.close()
        await self._connection.close(timeout_s=1.0)


def _received(delivery: Delivery) -> list[Received]:
    partition = TopicPartition(delivery.topic, delivery.partition)
    found = []
    for buffer in delivery.batches:
        batch = Batch.parse(buffer, compacted=True, contents=False)
        first = 0 if delivery.live else batch.position_of(Offset(delivery.from_offset))
        values = batch.values(first)
        if values:
            found.append(Received(partition, values))
    return found
