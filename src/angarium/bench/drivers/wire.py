"""The Python client over our own frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.bench.drivers.port import Received
from angarium.bench.plan import Place
from angarium.client import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.client import Subscription
    from angarium.modes import DeliveryMode


class WireDriver:
    """Clients of one cluster."""

    def __init__(self, servers: str, mode: DeliveryMode) -> None:
        self._servers = servers.split(",")
        self._mode = mode

    async def publisher(self) -> WirePublisher:
        """Return a client of its own."""
        client = Client(*self._servers)
        await client.connect()
        return WirePublisher(client, self._mode)

    async def subscriber(self, places: Sequence[Place], *, from_start: bool) -> WireSubscriber:
        """Return a subscription, on a client of its own."""
        client = Client(*self._servers)
        topics = sorted({place.topic for place in places})
        subscription = client.subscribe(topics, start="earliest" if from_start else "live")
        await subscription.begin()
        return WireSubscriber(client, subscription)

    async def close(self) -> None:
        """Nothing is shared."""


class WirePublisher:
    """Publishes through one client."""

    def __init__(self, client: Client, mode: DeliveryMode) -> None:
        self._client = client
        self._mode = mode

    async def publish(self, place: Place, values: Sequence[bytes]) -> None:
        """Publish records and wait for their acknowledgement."""
        topic, partition = place
        if len(values) == 1:
            await self._client.publish(topic, values[0], partition=partition, mode=self._mode)
        else:
            await self._client.publish_batch(topic, values, partition=partition, mode=self._mode)

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
        return Received(Place(batch.topic, batch.partition), batch.values())

    async def close(self) -> None:
        """Stop receiving."""
        await self._client.close()
