"""What a server counts of its requests, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.telemetry.exposition import Family, Histogram, Sample, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.wire.http.server import HttpServer

REQUEST_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the buckets in which requests are counted by how long they took."""


class RequestMeters:
    """Counts answers by status and by time."""

    def __init__(self) -> None:
        self._durations = Histogram(REQUEST_BOUNDS_S)
        self._statuses: dict[int, int] = {}

    def answered(self, status: int, seconds: float) -> None:
        self._durations.observe(seconds)
        self._statuses[status] = self._statuses.get(status, 0) + 1

    def families(self, server: HttpServer) -> Iterator[Family]:
        """Yield what was counted, and what goes on at `server` now."""
        yield Family(
            "angarium_http_requests_total",
            "counter",
            "Requests answered, by status.",
            tuple(
                Sample(count, (("status", str(status)),))
                for status, count in sorted(self._statuses.items())
            ),
        )
        yield Family(
            "angarium_http_request_duration_seconds",
            "histogram",
            "From a whole request to its answer; streams are not counted.",
            tuple(self._durations.samples()),
        )
        yield gauge("angarium_http_connections", "Connections open.", len(server.connections))
        yield gauge("angarium_http_streams", "Streams and WebSockets open.", len(server.streams))
        yield gauge("angarium_http_requests_in_progress", "Requests under way.", server.requests)
