"""The bounds of the gRPC door. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from angarium.wire.grpc import CallLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits(CallLimits):
    """What the door takes, keeps and waits for, beside what every gRPC listener does."""

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
