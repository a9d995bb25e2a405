"""How a node is doing: /status for people and older tools, /metrics for Prometheus, health."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.doors.http.routing import route
from angarium.telemetry.exposition import CONTENT_TYPE, Family, exposition
from angarium.telemetry.meter_families import meter_families
from angarium.telemetry.meters import Meters
from angarium.telemetry.process import process_families, resident_bytes
from angarium.wire.http.messages import JSON, Response
from angarium.wire.http.request_meters import RequestMeters

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from angarium.api import Broker
    from angarium.wire.http import HttpServer, Request
    from angarium.wire.http.messages import Answer
    from angarium.wire.http.router import NoParameters

_OK: Final = Response(200, b"ok\n", b"text/plain")
_MEGABYTE: Final = 1 << 20


class Facts(Protocol):
    """What a node knows of itself, besides what its broker tells everybody."""

    meters: Meters

    def unready(self) -> tuple[str, ...]:
        """Return why nothing should be sent here; nothing if it may."""
        return ()

    def families(self) -> Iterable[Family]:
        """Return metrics of what lies behind the door."""
        return ()


class Strangers(Facts):
    """Facts of a door that nobody told any."""

    def __init__(self) -> None:
        self.meters = Meters()


class Observing:
    """The requests that look."""

    def __init__(
        self,
        broker: Broker,
        facts: Facts,
        server: Callable[[], HttpServer],
        *,
        requests: RequestMeters | None = None,
        measuring: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`measuring` raises if who asks may not read metrics."""
        self.requests = requests or RequestMeters()
        self._measuring = measuring
        self._broker = broker
        self._facts = facts
        self._server = server

    # --- health ---------------------------------------------------------------------------------

    @route("GET /healthz", "Whether the process is alive.")
    def healthz(self, _: Request, __: NoParameters) -> Response:
        return _OK

    @route("GET /readyz", "Whether to send anything here.")
    def readyz(self, _: Request, __: NoParameters) -> Response:
        # A line for each reason why not.
        reasons = ("stopping",) if self._server().is_stopping else self._facts.unready()
        body = "".join(f"{one}\n" for one in reasons).encode()
        return Response(503, body, b"text/plain") if reasons else _OK

    # --- status ---------------------------------------------------------------------------------

    @route("GET /status", "How the node is doing.")
    async def status(self, _: Request, __: NoParameters) -> Response:
        """Return how the node is doing, under the names that earlier brokers gave to it, too."""
        if self._measuring is not None:
            # It counts every topic by name, whoever may know of them.
            await self._measuring()
        cluster = await self._broker.cluster_status()
        meters = self._facts.meters
        total = meters.total
        # Whole numbers: clients of the earlier brokers read them into integers.
        memory_mb = resident_bytes() // _MEGABYTE
        tasks = len(asyncio.all_tasks())
        is_leader = cluster.catalog_leader == cluster.node
        topics = {
            name: {
                "published_total": one.published,
                "consumed_total": one.delivered,
                "active_subscribers": one.subscribers,
                "publish_rate_sec": round(meters.rate(name, "published", one.published)),
                "consume_rate_sec": round(meters.rate(name, "delivered", one.delivered)),
            }
            for name, one in sorted(meters.topics.items())
        }
        body = {
            "node_id": str(cluster.node),
            "is_leader": is_leader,
            "leader_id": "" if cluster.catalog_leader is None else str(cluster.catalog_leader),
            "cluster_id": cluster.cluster_id,
            "version": cluster.version,
            "stats": {
                "global": {
                    "published_total": total.published,
                    "consumed_total": total.delivered,
                    "failed_total": total.failed,
                    "msg_per_sec": round(meters.rate("", "published", total.published)),
                    "bytes_alloc_mb": memory_mb,
                    "num_goroutines": tasks,
                    "uptime": f"{int(time.time() - meters.started_at)}s",
                },
                "topics": topics,
            },
            "messages_published": total.published,
            "messages_consumed": total.delivered,
            "memory_allocated_mb": memory_mb,
            "goroutines": tasks,
        }
        return Response(200, msgspec.json.encode(body), JSON)

    # --- metrics --------------------------------------------------------------------------------

    @route("GET /metrics", "Metrics, for Prometheus.")
    def metrics(self, _: Request, __: NoParameters) -> Answer:
        return self._measured() if self._measuring is None else self._measured_if_allowed()

    async def _measured_if_allowed(self) -> Response:
        assert self._measuring is not None
        await self._measuring()
        return self._measured()

    def _measured(self) -> Response:
        return Response(200, exposition(self._families()), CONTENT_TYPE)

    def _families(self) -> Iterable[Family]:
        meters = self._facts.meters
        yield from meter_families(meters)
        yield from self.requests.families(self._server())
        yield from self._facts.families()
        yield from process_families(meters.started_at)
