"""The metrics of the profile's two brokers, under the names that their dashboards ask for.

Both families count the same calls. Times are in seconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from angarium.doors.http.problems import READABLE_HEADERS, problem
from angarium.telemetry.exposition import (
    CONTENT_TYPE,
    Family,
    Histogram,
    Sample,
    exposition,
    gauge,
)
from angarium.wire.http import HttpLimits, HttpServer, Response
from angarium.wire.http.admission import Admission
from angarium.wire.http.router import NoParameters, Route, Router

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.wire.http import Request
    from angarium.wire.http.messages import Answer
    from angarium.wire.listening import Context

QUANTILES: Final = (0.5, 0.9, 0.99)

RECENT_CALLS: Final = 1_024
"""Calls of one kind that the quantiles are about: the latest. Older ones count no more."""

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""The histogram's buckets: the original broker's, and finer ones below them."""

CONNECTIONS_MAX: Final = 64
"""Connections that scrape at a time. One more is answered 503."""

_OUTCOMES: Final = ((True, "successful"), (False, "failed"))


class BaleMetrics:
    """What the profile's listener counts."""

    def __init__(self) -> None:
        self.subscribers = 0
        self._calls: defaultdict[tuple[str, bool], int] = defaultdict(int)
        self._recent: defaultdict[str, deque[float]] = defaultdict(
            lambda: deque(maxlen=RECENT_CALLS)
        )
        self._durations: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(BOUNDS_S))

    def ended(self, method: str, succeeded: bool, seconds: float) -> None:
        """Count a call; how long a subscription lasted says nothing about how fast it was."""
        self._calls[method, succeeded] += 1
        if method != "Subscribe":
            self._recent[method].append(seconds)
            self._durations[method].observe(seconds)

    def families(self) -> Iterator[Family]:
        """Yield both families."""
        yield from self._first()
        yield from self._second()

    def _first(self) -> Iterator[Family]:
        counts = [
            Sample(count, (("method", method.lower()), ("status", dict(_OUTCOMES)[succeeded])))
            for (method, succeeded), count in sorted(self._calls.items())
        ]
        yield Family(
            "rpc_request_get_method_count", "counter", "Count of each rpc call.", tuple(counts)
        )
        samples: list[Sample] = []
        for method, recent in sorted(self._recent.items()):
            label = ("rpc_duration", f"{method.lower()}_duration")
            ascending, whole = sorted(recent), self._durations[method]
            for share in QUANTILES:
                at = min(int(share * len(ascending)), len(ascending) - 1)
                samples.append(Sample(ascending[at], (label, ("quantile", f"{share:g}"))))
            samples.append(Sample(whole.total, (label,), "_sum"))
            samples.append(Sample(sum(whole.counts), (label,), "_count"))
        yield Family(
            "rpc_request_get_method_duration",
            "summary",
            "How long calls took, in seconds: the latest of each kind.",
            tuple(samples),
        )
        yield gauge("active_subscribers", "Number of active subscribers.", self.subscribers)

    def _second(self) -> Iterator[Family]:
        for wanted, word in _OUTCOMES:
            counts = [
                Sample(count, (("method", method),))
                for (method, succeeded), count in sorted(self._calls.items())
                if succeeded is wanted
            ]
            yield Family(
                f"broker_{word}_rpc_calls", "counter", f"Number of {word} calls.", tuple(counts)
            )
        samples = [
            sample
            for method, histogram in sorted(self._durations.items())
            for sample in histogram.samples((("method", method),))
        ]
        yield Family(
            "broker_server_method_duration_seconds",
            "histogram",
            "How long calls took.",
            tuple(samples),
        )
        yield gauge("broker_active_subscribers", "Number of active subscribers.", self.subscribers)


class BaleMetricsDoor:
    """Serves `GET /metrics` on each of some ports."""

    def __init__(
        self,
        metrics: BaleMetrics,
        *,
        host: str,
        ports: Sequence[int],
        admission: Admission | None = None,
        tls: Context | None = None,
    ) -> None:
        self._metrics = metrics
        self._admission = admission or Admission()
        self._host = host
        self._ports = ports
        self._tls = tls
        summary = "The metrics of the profile."
        route = Route(method="GET", path="/metrics", handler=self._page, summary=summary)
        self._router = Router([route], lists="there is GET /metrics alone")
        limits = HttpLimits(connections_max=CONNECTIONS_MAX)
        self._servers = [HttpServer(self._handle, problem, limits) for _ in ports]

    async def start(self) -> list[int]:
        """Open; return the ports."""
        return [
            await server.start(host=self._host, port=port, tls=self._tls)
            for server, port in zip(self._servers, self._ports, strict=True)
        ]

    async def stop(self, grace_s: float = 0.5) -> None:
        """Close."""
        for server in self._servers:
            await server.stop(grace_s)

    def _handle(self, request: Request) -> Answer:
        told = self._admission.admit(request, readable=READABLE_HEADERS)
        return self._router.dispatch(request) if told is None else told

    def _page(self, _: Request, __: NoParameters) -> Response:
        return Response(200, exposition(self._metrics.families()), CONTENT_TYPE)
