"""What a gRPC server counts of its calls, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.telemetry.exposition import REQUEST_BOUNDS_S, Family, Histogram, Sample, gauge
from angarium.wire.grpc.codes import GrpcCode

if TYPE_CHECKING:
    from collections.abc import Iterator


class CallMeters:
    """Counts calls by how they ended and how long they took."""

    def __init__(self) -> None:
        self.streams = 0
        """Calls with any number of requests that are under way."""
        self._durations = Histogram(REQUEST_BOUNDS_S)
        self._codes = [0] * len(GrpcCode)

    def ended(self, code: GrpcCode, seconds: float) -> None:
        """Count a call with one request."""
        self._codes[code] += 1
        self._durations.observe(seconds)

    def stream_ended(self, code: GrpcCode) -> None:
        """Count another one."""
        self._codes[code] += 1
        self.streams -= 1

    def families(self, *, connections: int, calls: int) -> Iterator[Family]:
        """Yield what was counted, and what goes on now."""
        yield Family(
            "angarium_grpc_calls_total",
            "counter",
            "Calls that ended, by gRPC's code.",
            tuple(
                Sample(self._codes[code], (("code", code.name),))
                for code in GrpcCode
                if self._codes[code]
            ),
        )
        yield Family(
            "angarium_grpc_call_duration_seconds",
            "histogram",
            "From a call's beginning to its end; streams of requests are not counted.",
            tuple(self._durations.samples()),
        )
        yield gauge("angarium_grpc_connections", "Connections open.", connections)
        yield gauge("angarium_grpc_streams", "Calls with streams of requests.", self.streams)
        yield gauge("angarium_grpc_calls_in_progress", "Calls under way.", calls)
