"""Transactions as frames: values of the contract in the header, batches in the payload."""

from __future__ import annotations

import msgspec

from angarium.api.transactions import GroupAck, StagedIn, TransactionId
from angarium.ids import Epoch, RaftGroupId
from angarium.machine.decisions import Decision
from angarium.machine.outcomes import Outcome
from angarium.machine.series import NOTHING_COMMITTED, Attempt


class OpenSeriesHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.transactions.Series`."""

    name: str
    sequenced: bool = False
    """A producer that counts itself, not a series of transactions."""


class StageHeader(msgspec.Struct, frozen=True, array_like=True):
    """The payload holds the batches. Answered with `api.transactions.Staged`."""

    transaction: TransactionId
    stage: str
    part: int
    topic: str
    partition: int
    acks: tuple[GroupAck, ...] = ()
    layout: int | None = None


class DecideHeader(msgspec.Struct, frozen=True, array_like=True):
    """To commit (answered with `api.transactions.Committed`) or abort (`Aborted`)."""

    transaction: TransactionId
    stages: tuple[StagedIn, ...]
    content: str = ""
    """What is committed, in the words of whoever does so."""


class ForgetSeriesHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    name: str
    topics: tuple[str, ...]
    sequenced: bool = False
    """A producer that counts itself, not a series of transactions."""


class PublishSequencedHeader(msgspec.Struct, frozen=True, array_like=True):
    """The payload holds the batches. Answered with `api.Ack`."""

    producer: str
    epoch: Epoch
    sequence: int
    topic: str
    partition: int
    layout: int | None = None
    """By which of the topic's layouts it goes there. An older server does not heed it."""
    former: tuple[tuple[int, int], ...] = ()
    """Partitions that are asked before, each with the layout by which it would have gone there."""


class LastSequenceHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `LastSequenceAnswer`."""

    producer: str
    epoch: Epoch
    topic: str
    partition: int


class LastSequenceAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The last sequence stored there."""

    sequence: int | None


class SettledByHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.transactions.Position`."""

    group: str
    topic: str
    partition: int


# --- between nodes -------------------------------------------------------------------------------


class TransactHeader(msgspec.Struct, frozen=True, array_like=True):
    """Commands for the leader of a group, one after the other in the payload.

    Answered with `TransactAnswer`.
    """

    group: RaftGroupId
    lengths: tuple[int, ...]


class Told(msgspec.Struct, frozen=True, array_like=True):
    """What became of one command, and how the machine stands with its name after it."""

    outcome: Outcome
    decision: Decision | None = None
    """As a home."""
    attempts: tuple[Attempt, ...] = ()
    committed: int = NOTHING_COMMITTED
    """As a participant: what is open, and the sequence of the newest commit."""
    holders: tuple[tuple[str, Attempt], ...] = ()
    """Open transactions, by name, that are in the way of an acknowledgement."""


class TransactAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One for each command, in their order."""

    told: tuple[Told, ...]


class StagedHeader(msgspec.Struct, frozen=True, array_like=True):
    """What is staged in these partitions, of those that you lead? Answered with `StagedHere`."""

    groups: tuple[RaftGroupId, ...]
    name: str = ""
    """A series, with its prefix, and one of its transactions; empty: none in particular."""
    sequence: int = 0


class StagedHere(msgspec.Struct, frozen=True, array_like=True):
    """What a node knows as the leader of partitions."""

    led: tuple[RaftGroupId, ...] = ()
    held: tuple[RaftGroupId, ...] = ()
    """Those in which anything is staged and not decided."""
    begun: bool = False
    """Whether the transaction that was named is open in one of them."""
