"""Publishing and reading as frames: the payload holds the batches."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import structs

from angarium.api import Ack, FetchRequest, FetchResult, Start
from angarium.ids import Buffer, NodeId, Offset
from angarium.modes import DeliveryMode


class PublishHeader(msgspec.Struct, frozen=True, array_like=True):
    """The payload holds the batches. Answered with `PublishAnswer`."""

    topic: str
    partition: int
    mode: DeliveryMode | None = None
    layout: int | None = None
    region: str = ""
    """Of the publisher, or of the node that passes its publish on; empty: not known."""


class PublishAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One ack per batch, in their order."""

    acks: tuple[Ack, ...]
    partitions: int = 0
    """How many the topic has by now, so that a producer hears of more; 0: not said."""


class FetchHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `FetchAnswer`, whose payload holds the batches."""

    topic: str
    partition: int
    offset: Offset
    bytes_max: int
    wait_ms: int = 0
    fresh: bool = False
    layout: int | None = None
    at_least: Offset | None = None
    max_staleness_ms: int | None = None
    forwarded: bool = False

    @classmethod
    def of(cls, request: FetchRequest, *, forwarded: bool = False) -> FetchHeader:
        """Return the header of a request."""
        return cls(
            request.topic,
            request.partition,
            request.offset,
            request.bytes_max,
            request.wait_ms,
            request.fresh,
            request.layout,
            request.at_least,
            request.max_staleness_ms,
            forwarded,
        )

    def request(self) -> FetchRequest:
        """Return what is asked for."""
        return FetchRequest(**structs.asdict(self))


class FetchAnswer(msgspec.Struct, frozen=True, array_like=True):
    """See `api.FetchResult`."""

    start_offset: Offset
    end_offset: Offset
    expired: tuple[int, ...] = ()
    node: NodeId = NodeId(0)
    region: str = ""
    staleness_ms: int = 0

    @classmethod
    def of(cls, result: FetchResult) -> FetchAnswer:
        """Return the header of a result; its batches are the payload."""
        return cls(
            result.start_offset,
            result.end_offset,
            result.expired,
            result.node,
            result.region,
            result.staleness_ms,
        )

    def result(self, batches: tuple[Buffer, ...]) -> FetchResult:
        """Return what was found."""
        return FetchResult(**structs.asdict(self), batches=batches)


class FindOffsetHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `FindOffsetAnswer`."""

    topic: str
    partition: int
    start: Start


class FindOffsetAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The offset that the start stands for."""

    offset: Offset


class ReserveHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `ReserveAnswer`."""

    topic: str
    partition: int
    count: int


class ReserveAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The first offset of those that stay empty."""

    offset: Offset


class OpenProducerHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.Producer`."""

    name: str | None = None


# --- subscribe: a stream ------------------------------------------------------------------------
#
# The client opens the stream with `Wants` and may send further `Want` and `Drop` frames. The node
# sends `Delivered` frames, whose payload holds batches, and `Ended` for a partition it cannot go
# on with. Credit is the stream's own: a peer that does not read is not sent more.


class Want(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Deliver this partition under a number that the client chooses and uses once."""

    number: int
    topic: str
    partition: int
    start: Start = Start()
    layout: int | None = None
    max_staleness_ms: int | None = None
    at_least: Offset | None = None


class Drop(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Deliver nothing more under this number."""

    number: int


Wish: TypeAlias = Want | Drop


class Wants(msgspec.Struct, frozen=True, array_like=True):
    """How a subscription begins."""

    wants: tuple[Want, ...]


class Delivered(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The payload holds batches; records below `from_offset` are not part of the delivery."""

    number: int
    from_offset: Offset = Offset(0)
    live: bool = False
    expired: tuple[int, ...] = ()
    """See `api.Delivery`."""
    node: NodeId = NodeId(0)
    region: str = ""
    staleness_ms: int = 0


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Nothing more comes under this number; the code says why (an `angarium.errors` code)."""

    number: int
    code: str
    message: str


Told: TypeAlias = Delivered | Ended
