"""The bounds of the gRPC door. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc

from angarium.bounds import CONNECTIONS_MAX, REQUEST_BYTES_MAX, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits(Bounds):
    """What the door takes, keeps and waits for."""

    connections_max: int = CONNECTIONS_MAX
    """Connections open at a time. One more is closed as soon as it comes."""

    idle_seconds_max: float = 300.0
    """A connection without a call, or that never says anything. Then it is closed; clients open
    another one by themselves when they need it. gRPC takes up to a tenth more or less."""

    handshake_seconds_max: float = 10.0
    """From a connection's beginning to the end of its greeting. A slower one is closed."""

    message_bytes_max: int = REQUEST_BYTES_MAX
    """The largest request taken, before and after it is inflated: a batch of a topic's default
    limit and its envelope. A larger one is refused with RESOURCE_EXHAUSTED. A request of many tiny
    parts takes some 30 times its size in memory once read, so raise it with care. Answers are not
    bound by it."""

    calls_max: int = 8_192
    """Calls under way, streams included. One more is refused with RESOURCE_EXHAUSTED."""

    calls_per_connection_max: int = 2_048
    """Calls under way on one connection. Clients wait with further ones: HTTP/2 tells them to."""

    interests_max: int = 10_000
    """Partitions that one subscription delivers. More fail with RESOURCE_EXHAUSTED."""

    delivery_bytes: int = 256 << 10
    """About how many bytes one delivery of a subscription has. A single record, or a single batch,
    goes out whole even if it is larger."""

    fetch_bytes_max: int = 4 << 20
    """About how many bytes of records one fetch returns at the most, whatever was asked for. A
    single record goes out whole even if it is larger."""

    stream_requests_max: int = 4_096
    """Requests of one PublishStream whose results have not been sent. At the bound no further ones
    are read until some have; flow control then slows the client down."""

    stream_bytes_max: int = 8 << 20
    """Bytes of those requests. Treated alike; one request may overdraw it."""

    settles_max: int = 256
    """Unanswered settlements of one consumer of a group, counted in messages. At the bound no
    further one is read until one is answered."""

    keepalive_interval_s: float = 20.0
    """How often a silent connection is pinged. One that does not answer for as long again is cut,
    so that subscribers who vanished do not stay for ever."""

    def __post_init__(self) -> None:
        Bounds.__post_init__(self)
        assert self.message_bytes_max >= 64 << 10


_AS_IT_IS: Final = 1 << int(grpc.Compression.NoCompression)
_GZIP: Final = 1 << int(grpc.Compression.Gzip)


def server_options(limits: GrpcLimits) -> list[tuple[str, int]]:
    """Return what gRPC has to be told so that these hold."""
    keepalive_ms = int(limits.keepalive_interval_s * 1_000)
    return [
        ("grpc.max_allowed_incoming_connections", limits.connections_max),
        ("grpc.max_connection_idle_ms", int(limits.idle_seconds_max * 1_000)),
        ("grpc.server_handshake_timeout_ms", int(limits.handshake_seconds_max * 1_000)),
        # Messages are inflated in `inflating`, and only those whose compression shows.
        ("grpc.per_message_decompression", 0),
        ("grpc.compression_enabled_algorithms_bitset", _AS_IT_IS | _GZIP),
        ("grpc.max_receive_message_length", limits.message_bytes_max),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", limits.calls_per_connection_max),
        # Calls that came while the event loop was busy wait for it. From a thousand of them on the
        # library would cancel some at random, which tells a client nothing that it could use.
        ("grpc.server.max_pending_requests", limits.calls_max),
        ("grpc.server.max_pending_requests_hard_limit", 2 * limits.calls_max),
        # It also counts calls that are over and not yet forgotten, and refuses some of those that
        # came in their place; how many there can be is bounded by the two above.
        ("grpc.http.overload_protection", 0),
        # Without this two nodes could listen on one port, and clients would meet either.
        ("grpc.so_reuseport", 0),
        # Subscribers who vanished without a word are noticed, and not kept for ever.
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", keepalive_ms),
        ("grpc.http2.max_pings_without_data", 0),
        # Clients may ping as often as we do, without being taken for attackers.
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive_ms // 2),
    ]
