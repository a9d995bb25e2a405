"""Which producers have sent what: a repeated batch is recognised, a lost one is noticed.

The laws, for one producer in one partition:
- sequences count records; each batch begins where the one before it ended, the first one at 0;
- what was stored before is a duplicate, and the last few are answered with their offsets;
- a newer epoch begins at 0 again and fences the older ones for good;
- a batch that skips records is refused, and so is one from a producer that was forgotten: nobody
  could tell any more whether it is new.

There is no time window. A bounded number of producers is remembered; the one silent for longest
makes room, and raises a low-water mark: an id below the mark that is not remembered is refused,
because it may be one of those that were forgotten. Ids at or above the mark were never forgotten.
Named producers have ids of their own (from `NAMED_FROM` up) and stay until they are deleted. Ids
from `keys.KEYED_FROM` up are no producers at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from angarium.errors import ProducerFenced, SequenceGap, UnknownProducer
from angarium.ids import Micros, Offset, ProducerId
from angarium.machine.outcomes import Duplicate, Refused, limited, refused
from angarium.machine.overlay import Overlay, Recency, RecencyOverlay

if TYPE_CHECKING:
    from angarium.machine.overlay import RecencyTable, Table
    from angarium.machine.partition_limits import PartitionLimits

NAMED_FROM: Final = ProducerId(1 << 62)
"""Ids from here up belong to named producers."""

REMEMBERED_BATCHES: Final = 5
"""How many of a producer's last batches are answered with their offset when they come again."""

EPOCH_CLOSED: Final = 1 << 62
"""The epoch of a deleted producer: above all real ones, so that everything is fenced."""

Sent: TypeAlias = tuple[int, int, int, int, int]
"""First sequence, past the last one, base offset, next offset, append time."""


class Producer(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is remembered of one producer."""

    epoch: int
    next_sequence: int
    recent: tuple[Sent, ...]
    """The last few batches, oldest first."""


_CLOSED: Final = Producer(EPOCH_CLOSED, 0, ())


class Producers:
    """The producers of one partition, or a leader's view ahead of them."""

    __slots__ = ("count", "low_water", "named", "named_count", "named_low_water", "rows")

    def __init__(self) -> None:
        self.rows: RecencyTable[int, Producer] = Recency()
        self.named: Table[int, Producer] = {}
        self.count = 0
        self.named_count = 0
        self.low_water = 0
        self.named_low_water = 0

    def fork(self) -> Producers:
        """Return a view that can be written ahead of this one."""
        other = Producers.__new__(Producers)
        assert isinstance(self.rows, Recency)
        other.rows = RecencyOverlay(self.rows)
        other.named = Overlay(self.named)
        other.count, other.named_count = self.count, self.named_count
        other.low_water, other.named_low_water = self.low_water, self.named_low_water
        return other

    def find(self, producer: int) -> Producer | None:
        """Return what is remembered of `producer`."""
        row = self.rows.get(producer)
        if row is None and producer >= NAMED_FROM:
            row = self.named.get(producer)
        return row

    def admit(
        self,
        producer: int,
        *,
        epoch: int,
        first: int,
        past: int,
        base_offset: int,
        next_offset: int,
        time: int,
        limits: PartitionLimits,
    ) -> Duplicate | Refused | None:
        """Judge a batch with the sequences `[first, past)`; `None` means it is new and noted."""
        row = self.find(producer)
        if row is None:
            # Nobody remembers it: either it is new, or it was evicted. Sequence 0 is not proof
            # enough of being new, hence the water marks.
            verdict = self._judge_stranger(producer, first, limits)
            if verdict is not None:
                return verdict
            recent: tuple[Sent, ...] = ()
        elif epoch == row.epoch:
            # Exactly the next sequence, or it is a repetition or a gap. This is what makes a
            # publish idempotent: a producer may send a batch as often as it likes. Planted as
            # duplicates-accepted and sequence-gap-accepted.
            if first != row.next_sequence:
                return _judge_repetition(row, first, past)
            recent = row.recent
            if len(recent) == REMEMBERED_BATCHES:
                recent = recent[1:]
        # A newer run of the same producer exists. What the older one still sends would mix with
        # it.
        elif epoch < row.epoch:
            return refused(ProducerFenced, f"epoch {epoch} was followed by {row.epoch}")
        elif first != 0:
            return refused(SequenceGap, f"a new epoch begins at sequence 0, not at {first}")
        else:
            recent = ()
        sent = (first, past, base_offset, next_offset, time)
        new = Producer(epoch, past, (*recent, sent))
        if producer < NAMED_FROM:
            if row is None:
                self._make_room(limits.producers_max)
                self.count += 1
            self.rows[producer] = new
        else:
            if row is None:
                self.named_count += 1
            self.named[producer] = new
        return None

    def repeated(
        self, producer: int, *, epoch: int, first: int, past: int
    ) -> Duplicate | Refused | None:
        """Judge a batch that may not be stored now; `None`: it is not stored, for certain."""
        row = self.find(producer)
        if row is None:
            named = producer >= NAMED_FROM
            is_forgotten = producer < (self.named_low_water if named else self.low_water)
            if not is_forgotten:
                return None
            # It may be stored, and nobody knows. To call that a no would store it twice.
            return refused(UnknownProducer, f"producer {producer} is not remembered; take a new id")
        if epoch < row.epoch:
            return refused(ProducerFenced, f"epoch {epoch} was followed by {row.epoch}")
        if epoch == row.epoch and past <= row.next_sequence:
            return _judge_repetition(row, first, past)
        return None

    def delete(self, producer: int, limits: PartitionLimits) -> bool:
        """Forget `producer` so that nothing of it is taken again; tell whether it was known."""
        row = self.find(producer)
        if row is None or row.epoch == EPOCH_CLOSED:
            return False
        if producer >= NAMED_FROM:
            # Its grave joins the producers that may be evicted, so that graves are bounded too.
            del self.named[producer]
            self.named_count -= 1
            self._make_room(limits.producers_max)
            self.count += 1
        self.rows[producer] = _CLOSED
        return True

    def _judge_stranger(self, producer: int, first: int, limits: PartitionLimits) -> Refused | None:
        named = producer >= NAMED_FROM
        # Ids grow, so below the highest evicted one a stranger may be somebody who was forgotten.
        # Storing its repeated batch would make a duplicate that nobody notices.
        if producer < (self.named_low_water if named else self.low_water):
            return refused(UnknownProducer, f"producer {producer} is not remembered; take a new id")
        if first != 0:
            return refused(SequenceGap, f"a producer begins at sequence 0, not at {first}")
        if named and self.named_count >= limits.named_producers_max:
            return limited("named_producers_max", "the partition knows no more named producers")
        return None

    def _make_room(self, producers_max: int) -> None:
        """Forget producers until there is room for one more."""
        while self.count and self.count >= producers_max:
            oldest = self.rows.oldest()
            del self.rows[oldest]
            self.count -= 1
            if oldest < NAMED_FROM:
                self.low_water = max(self.low_water, oldest + 1)
            else:
                self.named_low_water = max(self.named_low_water, oldest + 1)


def _judge_repetition(row: Producer, first: int, past: int) -> Duplicate | Refused:
    expected = row.next_sequence
    if first > expected:
        return refused(SequenceGap, f"expected sequence {expected}, got {first}")
    # Half of it is stored. No client sends so, and taking the rest would number it differently
    # than the client did.
    if past > expected:
        return refused(SequenceGap, f"sequences {first} to {past - 1} overlap what is stored")
    for sent in reversed(row.recent):
        if sent[0] == first and sent[1] == past:
            return Duplicate(Offset(sent[2]), Offset(sent[3]), Micros(sent[4]))
    # Older than the few that are remembered: stored for certain, but where is not known any more.
    return Duplicate()
