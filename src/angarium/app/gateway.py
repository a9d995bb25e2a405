"""The HTTP door as a process of its own, in front of a cluster that it reaches as a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.client import Client
from angarium.client.contract import RemoteBroker
from angarium.doors.http import HttpDoor
from angarium.telemetry.metering import Counting
from angarium.telemetry.meters import Meters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Ack
    from angarium.api.transactions import SequencedPublish
    from angarium.doors.http import HttpLimits
    from angarium.telemetry.exposition import Family


class GatewayPart:
    """A door, and the client behind it."""

    def __init__(
        self,
        servers: tuple[str, ...],
        *,
        host: str,
        port: int,
        origins: tuple[str, ...] = (),
        limits: HttpLimits | None = None,
    ) -> None:
        self._servers = servers
        self._host = host
        self._port = port
        self._origins = origins
        self._limits = limits
        self._client: Client | None = None
        self._door: HttpDoor | None = None

    async def start(self) -> int:
        """Reach the cluster and open the door; return the port."""
        client = self._client = Client(*self._servers)
        await client.connect()
        facts = GatewayFacts()
        broker = CountingBroker(client, facts.meters)
        self._door = HttpDoor(
            broker,
            groups=broker,
            sequenced=broker,
            client=lambda: client,
            facts=facts,
            host=self._host,
            port=self._port,
            origins=self._origins,
            limits=self._limits,
        )
        return await self._door.start()

    async def stop(self) -> None:
        """Close the door and hang up."""
        if self._door is not None:
            await self._door.stop()
        if self._client is not None:
            await self._client.close()


class CountingBroker(Counting, RemoteBroker):
    """The cluster behind a gateway; what goes through is counted here as a node counts it."""

    def __init__(self, client: Client, meters: Meters) -> None:
        super().__init__(client)
        self.meters = meters

    async def publish_sequenced(self, request: SequencedPublish) -> Ack:
        """Publish under a number of the client's own, and count."""
        ack = await super().publish_sequenced(request)
        self.meters.decided("sequenced_duplicate" if ack.duplicate else "sequenced")
        return ack


class GatewayFacts:
    """What a gateway knows of itself: what went through it."""

    def __init__(self) -> None:
        self.meters = Meters()

    def is_ready(self) -> str:
        """It opens its door only once it has reached the cluster, and finds its way again."""
        return ""

    def families(self) -> Iterable[Family]:
        """Nothing but what the door counts."""
        return ()
