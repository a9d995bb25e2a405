"""The log of one Raft group, as Raft reads it: the entry part of `raft.storage.Storage`.

It answers with everything that was appended, from the moment of the append; Raft itself knows
which part is stable. The newest entries are held in memory; older ones are read from the files,
and verified each time.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final, Protocol

from angarium.batch.checksum import crc32c_of_bytes, extend
from angarium.errors import CorruptData
from angarium.ids import Index, RaftGroupId, Term
from angarium.log.wal.format import FRAME, FRAME_HEADER_BYTES, FrameKind, padded
from angarium.log.wal.index import HOLE, EntryIndex
from angarium.raft.config import ENTRY_OVERHEAD_BYTES
from angarium.raft.errors import Compacted, Unavailable
from angarium.raft.messages import Entry, EntryKind
from angarium.raft.storage import within_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.log.wal.report import Damage
    from angarium.log.wal.writer import Touch

READ_BYTES_MAX: Final = 1024 * 1024
"""Neighbouring frames are read together up to this; a longer stretch takes several reads."""

_ENTRY_KINDS: Final = tuple(EntryKind)


class FrameSource(Protocol):
    """Where frames are read from."""

    @property
    def frame_seed(self) -> int:
        """Where the checksums of frame headers start."""

    def read(self, where: int, length: int) -> bytes:
        """Return up to `length` bytes of the file and position that `where` names."""

    @property
    def hurt(self) -> set[RaftGroupId]:
        """Groups in whose entries damage was found while reading; the log's owner empties it."""


class GroupLog(EntryIndex):
    """One group's entries, first to last."""

    __slots__ = ("_source", "damaged", "recent", "recent_first", "repaired", "rewinds",
                 "row_bytes", "synced_last", "touch")  # fmt: skip

    def __init__(self, group: RaftGroupId, source: FrameSource) -> None:
        self._source = source
        self.recent: list[Entry] = []
        self.recent_first = 1
        """The index of `recent[0]`; from here on every entry is in memory."""
        self.repaired: dict[int, Entry] = {}
        """Repaired entries that are not synced yet. They count as whole: whatever comes behind them
        is synced with them, or later."""
        self.synced_last = 0
        """Entries up to here may leave memory."""
        self.rewinds = 0
        """How often entries were taken back: an older sync says nothing about their successors."""
        self.touch: Touch | None = None
        """What has been buffered since the last seal."""
        self.damaged: Damage | None = None
        self.row_bytes: bytes | None = None
        """This group's line of the table, while it is up to date."""
        super().__init__(group)

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self.recent.clear()
        self.recent_first = 1
        self.repaired.clear()
        self.synced_last = 0
        self.rewinds += 1
        self.damaged = None

    # --- as Raft reads it -------------------------------------------------------------------

    def first_index(self) -> Index:
        """Return the index after the compaction point."""
        return Index(self.snapshot_index + 1)

    def last_index(self) -> Index:
        """Return the index of the last entry, or of the compaction point."""
        return Index(self.last)

    def term(self, index: Index) -> Term:
        """Return the term at `index`, which may be that of the compaction point."""
        return self.known_term(index)

    def entries(self, lo: Index, hi: Index, bytes_max: int) -> Sequence[Entry]:
        """Return the entries from `lo` up to but without `hi`, within `bytes_max`, at least one.

        They follow one another: a damaged entry, or one that has to be asked for anew, ends the
        answer before it. Raises `CorruptData` if the one at `lo` is damaged.
        """
        if lo <= self.snapshot_index:
            raise Compacted(f"group {self.group}: {lo} lies below {self.snapshot_index + 1}")
        if hi > self.last + 1:
            raise Unavailable(f"group {self.group}: {hi - 1} lies above {self.last}")
        # The way of nearly every read: followers that keep up ask for the newest entries.
        if lo >= self.recent_first:
            first = self.recent_first
            return within_bytes(self.recent[lo - first : hi - first], bytes_max)
        return self._older(lo, hi, bytes_max)

    def _older(self, lo: int, hi: int, bytes_max: int) -> Sequence[Entry]:
        found: list[Entry] = []
        for start, stop in self._stretches(lo, self._affordable(lo, hi, bytes_max)):
            try:
                part = self._read(start, stop)
            except CorruptData:
                if not found:
                    raise
                return found
            found += part
            # Entries behind the damage must not follow these: a replica that applies a log with
            # a gap has another state than its group. Planted as hole-in-the-log-passed-over.
            if len(part) < stop - start:
                return within_bytes(found, bytes_max)
        if lo + len(found) == self.recent_first < hi:
            found += self.recent[: hi - self.recent_first]
        return within_bytes(found, bytes_max)

    def _affordable(self, lo: int, hi: int, bytes_max: int) -> int:
        """Return up to where, before `recent`, entries fit into `bytes_max`; at least one does."""
        hi = min(hi, self.recent_first)
        stop, room = lo, bytes_max
        while stop < hi and (stop == lo or room > 0):
            size = self.sizes[stop - self.base] if stop >= self.base else 0
            room -= size + ENTRY_OVERHEAD_BYTES
            if room < 0 and stop > lo:
                break
            stop += 1
        return stop

    def _stretches(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """Divide the indexes from `lo` to `hi` where their frames are not neighbours on disk."""
        stretches = []
        start, expected, length = lo, -1, 0
        for index in range(lo, hi):
            offset = index - self.base
            where, size = (self.addresses[offset], self.sizes[offset]) if offset >= 0 else (HOLE, 0)
            if index > start and (where != expected or length > READ_BYTES_MAX):
                stretches.append((start, index))
                start, length = index, 0
            frame_bytes = FRAME_HEADER_BYTES + padded(size)
            expected, length = where + frame_bytes, length + frame_bytes
        stretches.append((start, hi))
        return stretches

    def _read(self, start: int, stop: int) -> list[Entry]:
        """Read frames that lie next to each other, and verify them; fewer if one is damaged."""
        # Sealed together, repaired entries are neighbours on disk before they are synced there.
        if start in self.repaired:
            indexes = takewhile(self.repaired.__contains__, range(start, stop))
            return [self.repaired[index] for index in indexes]
        try:
            where = self.address_of(start)
        except CorruptData:
            self._note_damage()
            raise
        lengths = [
            FRAME_HEADER_BYTES + padded(self.sizes[index - self.base])
            for index in range(start, stop)
        ]
        frames = self._source.read(where, sum(lengths))
        entries, position = [], 0
        for index, length in zip(range(start, stop), lengths, strict=True):
            try:
                entries.append(self._entry(frames, position, index))
            except CorruptData:
                # Found while serving. From here on the entry is a hole, for reads, for the owner
                # (`damaged`) and for the next table alike.
                self.spoil(index)
                self._note_damage()
                if entries:
                    return entries
                raise
            position += length
        return entries

    def _lost(self) -> Iterator[int]:
        return (index for index in super()._lost() if index not in self.repaired)

    def _note_damage(self) -> None:
        self.damaged = self.damage()
        self._source.hurt.add(self.group)

    def _entry(self, frames: bytes, position: int, index: int) -> Entry:
        """Return the entry whose frame starts at `position`; `CorruptData` if it is not whole."""
        data = position + FRAME_HEADER_BYTES
        if len(frames) >= data:
            body = frames[position : data - 4]
            fields = FRAME.unpack_from(frames, position)
            size, _, kind, frame_kind, group, found, term, payload_crc, header_crc = fields
            payload = frames[data : data + size]
            if (
                extend(self._source.frame_seed, body) == header_crc
                # A whole frame of some other entry would pass its own checksums.
                and (frame_kind, group, found) == (FrameKind.ENTRY, self.group, index)
                and len(payload) == size
                and crc32c_of_bytes(payload) == payload_crc
            ):
                return Entry(Term(term), Index(index), payload, _ENTRY_KINDS[kind])
        raise CorruptData(f"entry {index} of its log fails its checksum")

    # --- as the log keeps it ----------------------------------------------------------------

    def take_back(self, index: int) -> None:
        """Make room for another entry at `index`, dropping it and what follows."""
        self.rewinds += 1
        # The entries that come now are not synced, even if those they replace were.
        self.synced_last = min(self.synced_last, index - 1)
        if self.touch is not None:
            self.touch.take_back(index - self.addressed_last - 1)
        if index <= self.recent_first:
            self.recent.clear()
            self.recent_first = index
        else:
            del self.recent[index - self.recent_first :]
        self.cut(index - 1)

    def compact(self, index: int, term: int | None, *, discard: bool) -> None:
        """Let a snapshot stand for the entries up to `index`."""
        if index <= self.snapshot_index:
            return
        # Not one entry stays, also of those that wait in the buffer for an address.
        if discard:
            self.take_back(self.snapshot_index + 1)
        if self.touch is not None:
            self.touch.compact(index - self.addressed_last)
        super().compact(index, term, discard=discard)
        self.drop_recent(index)
        for repaired in [one for one in self.repaired if one <= index]:
            del self.repaired[repaired]
        if self.damaged is not None:
            self.damaged = self.damage()

    def drop_recent(self, index: int) -> None:
        """Let entries up to `index` leave memory."""
        count = index + 1 - self.recent_first
        if count > 0:
            del self.recent[:count]
            self.recent_first = index + 1
