"""The HTTP door as a process of its own, in front of a cluster that it reaches as a client.

The door is open from the start, even if the nodes come up later: /healthz answers, and /readyz says
whether the cluster does.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.app.gateway_callers import GatewayCallers
from angarium.client.contract import RemoteBroker
from angarium.doors.http import HttpDoor
from angarium.errors import AngariumError, Unauthenticated
from angarium.security.tls import TlsWatch
from angarium.telemetry.metering import Counting
from angarium.telemetry.meters import Meters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Ack
    from angarium.api.transactions import SequencedPublish
    from angarium.client import Client
    from angarium.doors.http import HttpLimits
    from angarium.security.tls import ListenerTls
    from angarium.telemetry.exposition import Family
    from angarium.wire.http.admission import Admission


LOOK_EVERY_S: Final = 2.0
"""How often a gateway asks whether the cluster is there."""

ANSWER_S_MAX: Final = 2.0
"""How long the cluster may take to say so."""

UNREACHED: Final = "no node of the cluster answers"

LETS_ALL_IN: Final = (
    "the cluster asks nobody who it is, and other machines can reach this gateway: set"
    " authentication in [security] of the nodes, or start the gateway with --insecure"
)

_log = logging.getLogger(__name__)


class GatewayPart:
    """A door, and the client behind it."""

    def __init__(
        self,
        servers: tuple[str, ...],
        *,
        host: str,
        port: int,
        admission: Admission | None = None,
        limits: HttpLimits | None = None,
        hsts_s: int = 0,
        tls: ListenerTls | None = None,
        must_ask: bool = False,
    ) -> None:
        """Prepare; `must_ask`: nobody is served for whom the cluster has not checked a proof, so
        that a cluster without authentication is not reached through here."""
        self._servers = servers
        self._host = host
        self._port = port
        self._admission = admission
        self._limits = limits
        self._hsts_s = hsts_s
        self._tls = tls
        self._must_ask = must_ask
        self._watch = None if tls is None else TlsWatch([tls.made], tls.certificates)
        self._callers: GatewayCallers | None = None
        self._door: HttpDoor | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Open the door, and look for the cluster; return the port."""
        facts = GatewayFacts(self._watch)
        callers = self._callers = GatewayCallers(
            self._servers,
            lambda client: CountingBroker(client, facts.meters),
            must_ask=self._must_ask,
        )
        self._door = HttpDoor(
            callers,
            facts=facts,
            host=self._host,
            port=self._port,
            admission=self._admission,
            limits=self._limits,
            hsts_s=self._hsts_s,
            tls=None if self._tls is None else self._tls.context,
        )
        if self._watch is not None:
            await self._watch.start()
        port = await self._door.start()
        _log.info("listening", extra={"address": f"{self._host}:{port}"})
        self._looking = asyncio.create_task(_look(callers, facts))
        return port

    async def stop(self) -> None:
        """Close the door and hang up."""
        if self._looking is not None:
            self._looking.cancel()
        if self._watch is not None:
            await self._watch.stop()
        if self._door is not None:
            await self._door.stop()
        if self._callers is not None:
            await self._callers.close()


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

    def __init__(self, tls: TlsWatch | None = None) -> None:
        self._tls = tls
        self.meters = Meters()
        self.reason = UNREACHED
        """Why nothing should be sent here; empty if it may."""

    def unready(self) -> tuple[str, ...]:
        """A gateway is as ready as the cluster behind it."""
        return (self.reason,) if self.reason else ()

    def families(self) -> Iterable[Family]:
        """Nothing but what the door counts, and how long its certificate lasts."""
        return () if self._tls is None else self._tls.families()


async def _look(callers: GatewayCallers, facts: GatewayFacts) -> None:
    """Note whether the cluster answers, and whether it wants to know who asks, again and again."""
    while True:
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                await callers.nobodys.cluster_status()
            reason = LETS_ALL_IN if callers.must_ask else ""
            callers.is_required = callers.is_barred = callers.must_ask
        except Unauthenticated:
            reason, callers.is_required, callers.is_barred = "", True, False
        except (AngariumError, TimeoutError):
            reason = UNREACHED
        if reason != facts.reason:
            _log.log(logging.WARNING if reason else logging.INFO, reason or "reached the cluster")
            facts.reason = reason
        await asyncio.sleep(LOOK_EVERY_S)
