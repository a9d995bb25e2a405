"""The bounds of a gRPC listener. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from angarium.bounds import CONNECTIONS_MAX, REQUEST_BYTES_MAX, Bounds
from angarium.wire.http2.http2_limits import Http2Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits(Bounds):
    """What the listener takes, keeps and waits for."""

    connections_max: int = CONNECTIONS_MAX
    """Connections open at a time. For one more, the one that has been without a call the longest is
    closed; if none is, the new one is."""

    idle_seconds_max: float = 300.0
    """A connection without a call. Then it is closed; clients open another one by themselves when
    they need it."""

    handshake_seconds_max: float = 10.0
    """From a connection's beginning to the end of its greeting. A slower one is closed."""

    keepalive_interval_s: float = 20.0
    """How often a silent connection is pinged. One that does not answer for as long again is cut,
    so that subscribers who vanished do not stay for ever."""

    message_bytes_max: int = REQUEST_BYTES_MAX
    """The largest request taken, before and after it is inflated: a batch of a topic's default
    limit and its envelope. A larger one is refused with RESOURCE_EXHAUSTED. A request of many tiny
    parts takes some 30 times its size in memory once read, so raise it with care. Answers are not
    bound by it."""

    metadata_bytes_max: int = 16 << 10
    """Metadata of a call, with 32 bytes for each pair. With more it is refused with
    RESOURCE_EXHAUSTED."""

    calls_max: int = 8_192
    """Calls under way, streams included. One more is refused with RESOURCE_EXHAUSTED."""

    calls_per_connection_max: int = 2_048
    """Calls under way on one connection. Clients wait with further ones: HTTP/2 tells them to."""

    received_bytes_max: int = 512 << 20
    """Bytes of requests that have come, inflated, and that no handler has dealt with, over all
    connections. At the bound the call whose bytes come next is refused with RESOURCE_EXHAUSTED."""

    unread_bytes_max: int = 16 << 20
    """Bytes of answers that wait on one connection because its client does not read them. Above it
    further calls are refused with RESOURCE_EXHAUSTED."""

    answers_bytes_max: int = 512 << 20
    """Bytes of answers that wait over all connections, and eight times what waits on one. Above it
    calls that are under way are refused with RESOURCE_EXHAUSTED rather than answered."""

    def __post_init__(self) -> None:
        Bounds.__post_init__(self)
        assert self.message_bytes_max >= 64 << 10

    @property
    def http2(self) -> Http2Limits:
        """What follows from these for the connections underneath."""
        return Http2Limits(
            connections_max=self.connections_max,
            idle_seconds_max=self.idle_seconds_max,
            handshake_seconds_max=self.handshake_seconds_max,
            keepalive_interval_s=self.keepalive_interval_s,
            streams_max=self.calls_per_connection_max,
            header_bytes_max=self.metadata_bytes_max,
            resets_max=2 * self.calls_per_connection_max,
        )
