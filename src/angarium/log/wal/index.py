"""Where the entries of one Raft group lie: by index a file position, a size and a term.

An entry costs 12 bytes here; terms are kept as runs, because they seldom change. The same object
is filled by recovery, by appends, and read by Raft. An entry known to be damaged is a *hole*: it
has an index but no position. Holes below `base` are implied and cost nothing.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData
from angarium.ids import Index, RaftGroupId, Term
from angarium.log.wal.format import Row, RowFlag
from angarium.log.wal.report import Damage
from angarium.raft.errors import Compacted, Unavailable
from angarium.raft.messages import HardState

if TYPE_CHECKING:
    from collections.abc import Iterator

HOLE: Final = 0
"""No frame lies at position 0 of a file, so it stands for "nowhere"."""

_OFFSET_BITS: Final = 32

# As plain numbers: a row is made for every group in every sync round.
_PRESENT: Final = int(RowFlag.PRESENT)
_HARD_STATE_SUSPECT: Final = int(RowFlag.HARD_STATE_SUSPECT)
_TAIL_UNKNOWN: Final = int(RowFlag.TAIL_UNKNOWN)


def address(sequence: int, position: int) -> int:
    """Return a file and a position in it as one number; a later one is higher."""
    assert position < 1 << _OFFSET_BITS, "a file of the write-ahead log stays below 4 GiB"
    return sequence << _OFFSET_BITS | position


def sequence_of(where: int) -> int:
    """Return the number of the file that an address lies in."""
    return where >> _OFFSET_BITS


def position_of(where: int) -> int:
    """Return the byte position of an address within its file."""
    return where & (1 << _OFFSET_BITS) - 1


class EntryIndex:
    """The log of one group as a table. It knows addresses and terms, not the entries' data."""

    __slots__ = (
        "addresses",
        "base",
        "group",
        "hard_state",
        "hard_state_suspect",
        "is_patchy",
        "last",
        "run_starts",
        "run_terms",
        "sizes",
        "snapshot_index",
        "snapshot_term",
        "tail_unknown",
    )

    def __init__(self, group: RaftGroupId) -> None:
        self.group: Final = group
        self.clear()

    def clear(self) -> None:
        """Become the log of a group that has never heard of anything."""
        self.hard_state = HardState()
        self.hard_state_suspect = False
        self.tail_unknown = False
        self.is_patchy = False
        """Some address is a hole, or was one: addresses need not grow with the index any more."""
        self.snapshot_index = 0
        self.snapshot_term: int | None = 0
        self.base = 1
        """The index of `addresses[0]`. What lies between the snapshot and it are holes."""
        self.last = 0
        """The last index; entries above the end of `addresses` wait to be written."""
        self.addresses = array("Q")
        self.sizes = array("I")
        # Terms by runs and not by entry: a log of millions of entries has a handful of terms.
        self.run_starts: list[int] = []
        self.run_terms: list[int | None] = []
        """From `run_starts[k]` on entries have term `run_terms[k]`; None: nobody knows it."""

    # --- questions --------------------------------------------------------------------------

    @property
    def addressed_last(self) -> int:
        """The highest index that has an address or is a hole."""
        return self.base + len(self.addresses) - 1

    def term_at(self, index: int) -> int | None:
        """Return the term at `index`, None where it is lost."""
        # The snapshot's own term is kept: the next append is matched against it (Raft §5.3).
        if index <= self.snapshot_index:
            if index == self.snapshot_index:
                return self.snapshot_term
            raise Compacted(f"group {self.group}: index {index} lies below {self.snapshot_index}")
        if index > self.last:
            raise Unavailable(f"group {self.group}: index {index} lies above {self.last}")
        run = len(self.run_starts) - 1
        # Nearly always the newest run is meant, and no search is needed.
        if run < 0 or index < self.run_starts[run]:
            run = bisect_right(self.run_starts, index) - 1
        return self.run_terms[run] if run >= 0 else None

    def known_term(self, index: int) -> Term:
        """Return the term at `index`; `CorruptData` where it is lost."""
        term = self.term_at(index)
        if term is None:
            raise CorruptData(f"the term of entry {index} is lost")
        return Term(term)

    def address_of(self, index: int) -> int:
        """Return where the entry at `index` lies; `CorruptData` for a hole."""
        # A hole is an entry that existed and cannot be read. It is an error and never a shorter
        # log.
        where = self.addresses[index - self.base] if index >= self.base else HOLE
        if where == HOLE:
            raise CorruptData(f"group {self.group}: entry {index} is damaged")
        return where

    def oldest_sequence(self) -> int | None:
        """Return the oldest file in which a live entry lies."""
        addresses = self.addresses
        if not addresses:
            return None
        # Addresses grow with the index, as entries are written in order; a repaired one lies
        # behind its successors.
        if not self.is_patchy:
            return sequence_of(addresses[0])
        return min((sequence_of(where) for where in addresses if where != HOLE), default=None)

    def damage(self) -> Damage | None:
        """Return what is lost, None if nothing is."""
        first, last = self._damaged_range() if self._may_have_holes else (None, None)
        if self.tail_unknown:
            first, last = (self.last + 1 if first is None else first), None
        if first is None and not self.hard_state_suspect:
            return None
        return Damage(
            first_damaged_index=None if first is None else Index(first),
            last_damaged_index=None if last is None else Index(last),
            hard_state_intact=not self.hard_state_suspect,
        )

    @property
    def _may_have_holes(self) -> bool:
        return self.is_patchy or self.base > self.snapshot_index + 1

    def holes(self) -> list[tuple[Index, Index]]:
        """Return the first and the last entry of each stretch that is lost, upward."""
        found: list[tuple[Index, Index]] = []
        for index in self._lost():
            if found and found[-1][1] == index - 1:
                found[-1] = found[-1][0], Index(index)
            else:
                found.append((Index(index), Index(index)))
        return found

    def _lost(self) -> Iterator[int]:
        yield from range(self.snapshot_index + 1, self.base)
        for offset, where in enumerate(self.addresses):
            if where == HOLE:
                yield self.base + offset

    def _damaged_range(self) -> tuple[int | None, int | None]:
        first = last = None
        for last in self._lost():
            first = last if first is None else first
        return first, last

    def row(self) -> Row:
        """Return the line of the table for this group, in its present state."""
        state = self.hard_state
        flags = _PRESENT
        if self.hard_state_suspect:
            flags |= _HARD_STATE_SUSPECT
        if self.tail_unknown:
            flags |= _TAIL_UNKNOWN
        return Row(
            self.group,
            state.term,
            state.vote,
            state.commit,
            self.last,
            self.term_at(self.last),
            self.snapshot_index,
            self.snapshot_term,
            flags,
        )

    # --- changes ----------------------------------------------------------------------------

    def note_term(self, index: int, term: int | None) -> None:
        """Record the term of the entry that is being added at the end."""
        if not self.run_terms or self.run_terms[-1] != term:
            self.run_starts.append(index)
            self.run_terms.append(term)

    def add(self, index: int, term: int | None, where: int, size: int) -> None:
        """Put an entry at the end; it takes the place of `index` and everything after it."""
        if index != self.last + 1:
            self.rewind(index)
        if not self.run_terms or self.run_terms[-1] != term:
            self.run_starts.append(index)
            self.run_terms.append(term)
        self.addresses.append(where)
        self.sizes.append(size)
        self.last = index
        # An entry at a known index behind the lost ones: how far the log goes is certain again.
        self.tail_unknown = False

    def rewind(self, index: int) -> None:
        """Make `index` the next one to be added, dropping what is there or leaving holes."""
        assert index > self.snapshot_index, "a snapshot is never taken back"
        if index > self.last + 1:
            self.extend_with_holes(index - 1)
        self.cut(index - 1)
        self.tail_unknown = False

    def cut(self, last: int) -> None:
        """Drop every entry above `last`."""
        # Everything that has an address goes, and some of the holes below it.
        if last < self.base - 1:
            self.base = last + 1
        keep = last - self.base + 1
        del self.addresses[keep:], self.sizes[keep:]
        while self.run_starts and self.run_starts[-1] > last:
            self.run_starts.pop()
            self.run_terms.pop()
        self.last = min(self.last, last)

    def extend_with_holes(self, last: int) -> None:
        """Let entries exist, and be lost, up to `last`."""
        if last <= self.last:
            return
        self.note_term(self.last + 1, None)
        if not self.addresses:
            self.base = last + 1
        else:
            self.addresses.extend([HOLE] * (last - self.last))
            self.sizes.extend([0] * (last - self.last))
            self.is_patchy = True
        self.last = last

    def compact(self, index: int, term: int | None, *, discard: bool) -> None:
        """Let a snapshot stand for entries up to `index`; all go if they contradict it."""
        if index <= self.snapshot_index:
            return
        # Nothing is left behind the snapshot, and with it every hole is gone: damage below a
        # durable snapshot costs nothing.
        if discard or index >= self.last:
            self.addresses, self.sizes = array("Q"), array("I")
            self.run_starts, self.run_terms = [], []
            self.last = index
            self.base = index + 1
            self.is_patchy = False
            self.tail_unknown = self.tail_unknown and not discard
        else:
            self._drop_front(index)
        self.snapshot_index, self.snapshot_term = index, term

    def _drop_front(self, index: int) -> None:
        count = max(0, index + 1 - self.base)
        del self.addresses[:count], self.sizes[:count]
        self.base = max(self.base, index + 1)
        run = bisect_right(self.run_starts, index + 1) - 1
        if run > 0:
            del self.run_starts[:run], self.run_terms[:run]
        if not self.addresses:
            self.is_patchy = False

    def spoil(self, index: int) -> None:
        """Turn one entry into a hole; its term stays known."""
        self.addresses[index - self.base] = HOLE
        self.is_patchy = True

    def suspect(self) -> None:
        """Trust nothing that lost frames may have changed.

        Committed entries are never taken back, so those up to the commit index stay.
        """
        self.hard_state_suspect = True
        self.forget_above(self.hard_state.commit)

    def forget_above(self, index: int) -> None:
        """Turn every entry above `index` into a hole, and admit that there may be more."""
        last, index = self.last, max(index, self.snapshot_index)
        if index < last:
            self.cut(index)
            self.extend_with_holes(last)
        self.tail_unknown = True

    def fill(self, index: int, term: int, where: int, size: int) -> None:
        """Put a repaired entry where a hole was; what follows stays."""
        if index < self.base:
            missing = self.base - index
            self.addresses = array("Q", [HOLE]) * missing + self.addresses
            self.sizes = array("I", [0]) * missing + self.sizes
            self.base = index
        self.addresses[index - self.base] = where
        self.sizes[index - self.base] = size
        self.is_patchy = True
        self.set_term(index, term)

    def set_term(self, index: int, term: int) -> None:
        """Correct the term of one entry in the middle."""
        if self.term_at(index) == term:
            return
        after = self.term_at(index + 1) if index < self.last else None
        at = bisect_right(self.run_starts, index)
        if at and self.run_starts[at - 1] == index:
            self.run_terms[at - 1] = term
        else:
            self.run_starts.insert(at, index)
            self.run_terms.insert(at, term)
            at += 1
        if index < self.last and (at == len(self.run_starts) or self.run_starts[at] != index + 1):
            self.run_starts.insert(at, index + 1)
            self.run_terms.insert(at, after)
