"""Transactions: batches and acknowledgements of several partitions that happen together or not.

What belongs to a transaction is *staged* in its partitions and seen by nobody. A commit is one
entry in the log of the transaction's *home*, found from its name, and names the stages that
count; what else was staged, by attempts that failed, is dropped. Each partition shows its part at
once, the partitions one after the other.

A *series* is all transactions of one name. Each has an epoch, the run of its writer, and a
sequence, which one it is. Opening a series takes a new epoch: transactions of older ones that were
not decided are aborted, those that were are carried out, and their owner is fenced from then on.
Committed sequences only grow, so committing one again is answered as what it is, a repetition.
Everything here may be asked again after an error whose outcome is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from angarium.ids import Buffer, Epoch, Offset

if TYPE_CHECKING:
    from angarium.api.publishing import Ack

HOMES_TOPIC: Final = "angarium.transactions"
"""Where transactions are decided: the home of a series is a partition of this topic."""

TRANSACTIONS: Final = "t:"
SEQUENCED: Final = "s:"
"""What the names of series begin with in the machines, so that the two kinds never meet. A series
has its home in the partition that `machine.home_partition` finds from the name with its prefix."""

ONE_TIME: Final = "one-time-"
"""What the name of a series begins with that is used once, by somebody who then forgets it: who
may publish may do that, too. What follows is not to be guessed."""

SERIES_CHARACTERS_MAX: Final = 250
"""Length of a series' name. A longer one is refused."""

SEQUENCE_MAX: Final = (1 << 62) - 1
"""The highest sequence. A higher one is refused."""

STAGE_BYTES_MAX: Final = 16 << 20
"""Bytes staged by one request. More are refused; a stage may have any number of parts."""


class TransactionId(msgspec.Struct, frozen=True, array_like=True):
    """One transaction: the series, the run that writes it, and which one it is."""

    name: str
    epoch: Epoch
    sequence: int
    """Counts from 0. Opening a series returns the last one that was committed."""


class GroupAck(msgspec.Struct, frozen=True, array_like=True):
    """Records that a consumer group is done with if the transaction commits."""

    group: str
    ranges: tuple[int, ...]
    """First offset, past the last offset, and so on."""
    generation: int | None = None
    """The group's, as of the delivery: an acknowledgement from before the group was moved is
    refused. None: whatever it is now."""


class StageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Batches and acknowledgements for one partition, put aside."""

    transaction: TransactionId
    stage: str
    """Its name. A writer that tries again after a crash takes a new one: the commit says which
    stages count."""
    part: int
    """Counts the requests that fill one stage of a partition, from 0; a repeated one is
    recognised."""
    topic: str
    partition: int
    batches: tuple[Buffer, ...] = ()
    acks: tuple[GroupAck, ...] = ()
    layout: int | None = None
    """As in `PublishRequest`; a partition that is fenced against it aborts the transaction."""


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a stage request."""

    parts: int = 0
    """How many parts the stage has now."""
    repeated: bool = False
    is_committed: bool = False
    """The transaction has been committed before, here at least: nothing was staged."""


class StagedIn(msgspec.Struct, frozen=True, array_like=True):
    """Which stages of a partition a commit publishes, in this order."""

    topic: str
    partition: int
    stages: tuple[str, ...]


class PublishedIn(msgspec.Struct, frozen=True, array_like=True):
    """Where a commit put its records in one partition."""

    topic: str
    partition: int
    base_offset: Offset | None = None
    """None for all but the newest commit of a series."""
    next_offset: Offset | None = None


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction is committed, and every partition has carried it out."""

    repeated: bool = False
    """It had been committed before; this request changed nothing."""
    partitions: tuple[PublishedIn, ...] = ()
    last_sequence: int | None = None
    """The newest commit of the series: this one, or a later one that came before a repetition."""
    content: str = ""
    """What that newest commit was of, as it said itself: compare it after a repetition."""


class Aborted(msgspec.Struct, frozen=True, kw_only=True):
    """How a transaction ended that somebody wanted to abort."""

    committed: bool = False
    """It had been committed before, so it stays."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A series that was opened: nothing of its older runs is undecided any more."""

    epoch: Epoch
    last_sequence: int | None = None
    """The newest transaction that was committed."""


class SequencedPublish(msgspec.Struct, frozen=True, kw_only=True):
    """Batches for one partition under a number that the producer chose itself."""

    producer: str
    epoch: Epoch
    sequence: int
    """Grows from publish to publish of this producer in this partition; gaps are fine."""
    topic: str
    partition: int
    batches: tuple[Buffer, ...]
    layout: int | None = None
    """By which layout of the topic a key, or the number, has sent them there; a partition that is
    fenced against it refuses them (`LayoutChanged`). None: the publisher names the partition."""
    former: tuple[tuple[int, int], ...] = ()
    """Other partitions to which earlier layouts have sent the same, each with the layout: what was
    stored there by it is not stored again."""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """What a group has settled in a partition."""

    floor: Offset
    """Everything below."""
    ranges: tuple[int, ...] = ()
    """And these above it: first offset, past the last offset, and so on."""
    generation: int | None = None
    """The index of the entry that last opened or moved the group; None: it was never here."""


class TransactionBroker(Protocol):
    """The part of the contract that is about transactions and producers that count themselves."""

    async def open_series(self, name: str) -> Series:
        """Take a new epoch of a series and end what its older runs left behind."""

    async def stage(self, request: StageRequest) -> Staged:
        """Put batches and acknowledgements aside for a transaction."""

    async def commit(
        self, transaction: TransactionId, stages: tuple[StagedIn, ...], *, content: str = ""
    ) -> Committed:
        """Publish these stages and drop all others; `TransactionAborted`, `ProducerFenced`.

        `content` says what is committed; it is kept, and told when that is committed again.
        """

    async def abort(self, transaction: TransactionId, stages: tuple[StagedIn, ...]) -> Aborted:
        """Drop everything staged, unless it has been committed; `stages` says where to look."""

    async def forget_series(self, name: str, topics: tuple[str, ...]) -> None:
        """Forget a series at its home and in these topics; `TransactionPending` if one is open."""

    async def open_sequenced(self, producer: str) -> Series:
        """Take a new epoch of a producer that counts itself; the older one is fenced per
        partition, once the new one asks or publishes there."""

    async def forget_sequenced(self, producer: str, topics: tuple[str, ...]) -> None:
        """Forget the numbers of a producer that counts itself in these topics; `NotFound` if there
        is no such topic. From then on a number that was stored would be stored again."""

    async def publish_sequenced(self, request: SequencedPublish) -> Ack:
        """Store batches unless that sequence, or a higher one, has been stored before."""

    async def last_sequence(
        self, producer: str, epoch: Epoch, *, topic: str, partition: int
    ) -> int | None:
        """Return the last sequence stored in a partition; older epochs can add none any more."""

    async def settled_by(self, group: str, *, topic: str, partition: int) -> Position:
        """Return what a group has settled in a partition; nothing if it has never been here."""
