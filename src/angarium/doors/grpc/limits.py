"""The bounds of the gRPC door. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits:
    """What the door takes, keeps and waits for."""

    message_bytes_max: int = (4 << 20) + (64 << 10)
    """The largest request taken: a batch of a topic's default limit and its envelope. gRPC itself
    refuses a larger one with RESOURCE_EXHAUSTED. A request of many tiny parts takes some 30 times
    its size in memory once read, so raise it with care. Answers are not bound by it."""

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
        assert self.message_bytes_max >= 64 << 10
        assert self.calls_max > 0
        assert self.calls_per_connection_max > 0
        assert self.interests_max > 0
        assert self.delivery_bytes > 0
        assert self.fetch_bytes_max > 0
        assert self.stream_requests_max > 0
        assert self.stream_bytes_max > 0
        assert self.settles_max > 0
        assert self.keepalive_interval_s > 0


def server_options(limits: GrpcLimits) -> list[tuple[str, int]]:
    """Return what gRPC has to be told so that these hold."""
    keepalive_ms = int(limits.keepalive_interval_s * 1_000)
    return [
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
