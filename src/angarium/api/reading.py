"""Reading: fetches from an offset on, and subscriptions that go on with what comes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.errors import AngariumError, InvalidArgument
from angarium.ids import Buffer, NodeId, Offset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

FETCH_BYTES_MAX: Final = 8 << 20
"""Bytes one fetch returns at the most, whatever was asked for; a larger batch comes alone."""

FETCH_WAIT_MS_MAX: Final = 30_000
"""How long a fetch may wait for records to come, whatever was asked for."""


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Committed batches of one partition, from an offset on."""

    topic: str
    partition: int
    offset: Offset
    bytes_max: int = 1 << 20
    wait_ms: int = 0
    """At the end of the log, wait this long for more before answering with nothing."""
    layout: int | None = None
    """As in `Interest`: at the fence of the next one the answer is `LayoutChanged`."""
    fresh: bool = False
    """Ask the leader, and let it make sure that it still leads: never stale."""
    at_least: Offset | None = None
    """An offset that the reader knows of: from the receipt of its own publish, or from an earlier
    read. A replica that does not have it yet waits a moment, or asks the leader: so a reader sees
    what it wrote, and never less than it saw before."""
    max_staleness_ms: int | None = None
    """Answer only if everything that was committed so long ago is part of what is read. A replica
    that does not know that of itself asks the leader; `TooStale` if nobody can say it."""
    forwarded: bool = False
    """Between nodes: another one asks, which looked for the nearest replica already."""


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whole batches; the first one may begin below the offset asked for."""

    start_offset: Offset
    """The first offset that can still be read."""
    end_offset: Offset
    """The end of what is committed, as far as the answering node knows."""
    batches: tuple[Buffer, ...] = ()
    expired: tuple[int, ...] = ()
    """First offset, past the last offset, and so on, ascending: which records of the batches had
    expired when the node answered. They are not part of the result, though the batches, which are
    whole, still hold them."""
    node: NodeId = NodeId(0)
    """Whose replica was read; 0 if nobody said so."""
    region: str = ""
    """Where that node is."""
    staleness_ms: int = 0
    """How old this may be: 0 from the leader; otherwise how long ago the replica last heard from
    it, or, if the reader has set a bound, was last known to have everything."""


class StartAt(IntEnum):
    """Where in a partition to begin."""

    EARLIEST = 0
    LATEST = 1
    """At the end: only what comes after this request."""
    OFFSET = 2
    TIMESTAMP = 3
    """At the first record appended at this time, in µs, or later."""


class Start(msgspec.Struct, frozen=True, array_like=True):
    """Where to begin; `value` is the offset or the time where `at` needs one."""

    at: StartAt = StartAt.LATEST
    value: int = 0


def check_start(start: Start) -> None:
    """Raise `InvalidArgument` for an offset that no partition has."""
    if start.at is StartAt.OFFSET and start.value < 0:
        raise InvalidArgument(f"an offset is not negative: {start.value}")


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """One partition that a subscriber wants, and from where."""

    topic: str
    partition: int
    start: Start = Start()
    layout: int | None = None
    """Up to which layout of the topic the subscriber has read all that comes before it. At the
    fence of the next one the partition ends with `LayoutChanged`. None: fences are no matter."""
    max_staleness_ms: int | None = None
    """As in `FetchRequest`, whenever something is delivered, and while nothing is."""
    at_least: Offset | None = None
    """As in `FetchRequest`: up to this offset, what a replica does not have comes from the leader,
    instead of when the replica gets it."""
    may_fail_alone: bool = False
    """Whether a failure of this partition is a delivery (`Delivery.failure`) and ends nothing else.
    Otherwise the whole subscription ends with it."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Batches on their way to a subscriber."""

    topic: str
    partition: int
    batches: tuple[Buffer, ...]
    from_offset: Offset = Offset(0)
    """Records below it are not part of the delivery: the first batch may begin earlier."""
    expired: tuple[int, ...] = ()
    """As in `FetchResult`: records of the batches that are not part of the delivery."""
    live: bool = False
    """True for PERFORMANCE batches: they have no offset and are stored nowhere."""
    fenced: bool = False
    """True where nothing more comes of the partition: it has come to the fence of the layout after
    the one that the interest named. There are no batches."""
    failure: AngariumError | None = None
    """Why nothing more comes of the partition, where the interest allows for that. There are no
    batches."""
    node: NodeId = NodeId(0)
    region: str = ""
    staleness_ms: int = 0
    """The three as in `FetchResult`."""


class Subscription(Protocol):
    """A subscriber's view of its partitions. A slow reader slows down only itself."""

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """Yield deliveries until the subscription is closed; raises what broke it."""

    async def add(self, interests: Sequence[Interest]) -> None:
        """Deliver these partitions, too."""

    async def drop(self, topic: str, partition: int) -> None:
        """Deliver nothing more of a partition."""

    async def close(self) -> None:
        """End it."""


class PassingBroker(Protocol):
    """Hands on what is stored nowhere, to those who get the rest in another way."""

    async def subscribe_passing(self, topic: str, partitions: Sequence[int]) -> Subscription:
        """Deliver what passes in PERFORMANCE mode, and nothing that is stored."""
