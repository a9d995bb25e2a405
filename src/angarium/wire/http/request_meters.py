"""What a server counts of its requests, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.telemetry.exposition import REQUEST_BOUNDS_S, Family, Histogram, Sample, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.wire.http.server import HttpServer


class RequestMeters:
    """Counts answers by status and by time."""

    def __init__(self) -> None:
        self._durations = Histogram(REQUEST_BOUNDS_S)
        self._statuses: dict[int, int] = {}

    def answered(self, status: int, seconds: float) -> None:
        """Count an answer."""
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
