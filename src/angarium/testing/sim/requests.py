"""What simulated clients say to nodes, and hear back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from angarium.errors import AngariumError
    from angarium.ids import NodeId, Offset, RaftGroupId
    from angarium.machine import Command
    from angarium.modes import DeliveryMode
    from angarium.replica.acks import Published
    from angarium.wire.operations.transactions import Told


class PublishRequest(NamedTuple):
    """One batch to publish."""

    client: str
    number: int
    group: RaftGroupId
    batch: bytes
    mode: DeliveryMode
    more: tuple[bytes, ...] = ()
    """Further batches of the same publish."""
    layout: int | None = None
    """By which layout of the topic its key has sent it there."""


class SubmitRequest(NamedTuple):
    """One command other than a batch: a trim, a stage, a decision."""

    client: str
    number: int
    group: RaftGroupId
    command: Command


class PublishReply(NamedTuple):
    """What became of a batch or a command, as far as the node knows."""

    number: int
    node: NodeId
    answer: Published | AngariumError
    told: Told | None = None
    """For a command of a transaction: how the leader's machine stands with its name."""


class FetchRequest(NamedTuple):
    """Committed records from an offset on, from any replica."""

    client: str
    number: int
    group: RaftGroupId
    offset: Offset
    bytes_max: int
    at_least: int = 0
    """Up to where everything has to be shown."""
    staleness_max: int | None = None
    """How stale (µs) the answer may be at most; None: it does not matter."""
    layout: int | None = None
    """Up to which layout whoever asks has read what comes before it; None: fences do not matter."""


class FetchReply(NamedTuple):
    """The batches found."""

    number: int
    node: NodeId
    batches: tuple[bytes, ...]
    start: int = 0
    """Where the log begins, if what was asked for lies before that."""
    end: int = 0
    """Where it ends, as far as the node knows."""
    staleness: int | None = None
    """How stale (µs) this may be at most, as far as the node knows."""
    answered: int = 0
    """When it was said, by the clock of the world: for checkers only."""
    is_stopped: bool = False
    """Whether a fence is in the way."""


class HighWaterRequest(NamedTuple):
    """Where does the committed log end, surely not earlier than now, and what is there?"""

    client: str
    number: int
    group: RaftGroupId
    offset: Offset
    bytes_max: int


class HighWaterReply(NamedTuple):
    """It ends here; and what a fresh fetch from the offset on found, if it was not refused."""

    number: int
    node: NodeId
    end: int
    batches: tuple[bytes, ...] | None = None
