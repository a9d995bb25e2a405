"""The records that a check has taken, as far back as it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.security.audit.chain import NOTHING_SEEN, Progress

if TYPE_CHECKING:
    from angarium.api.audit import AuditRecord

KEPT_MAX: Final = 200_000
"""Records that are remembered while the next ones are checked. A record that says it had seen only
older ones is not held against them, and that is noted; nodes read the topic as they write."""


@dataclass(eq=False, slots=True)
class Entry:
    """One record."""

    row: int
    """Which of the records that were taken, from 0: it is their order that counts."""
    progress: Progress
    """Its offset and hash, and the digest up to it."""
    writer: str = ""
    number: int = -1
    is_named: bool = False
    """Whether another record names its hash."""

    @property
    def offset(self) -> int:
        """Where it stands in the topic."""
        return self.progress.offset

    @property
    def hash(self) -> bytes:
        """Of its value."""
        return self.progress.hash


class Entries:
    """The newest records, found by their hash."""

    def __init__(self, start_offset: int, *, kept_max: int = KEPT_MAX) -> None:
        self.start = start_offset
        self.has_base = start_offset == 0
        """Whether the digest up to the beginning is known; else the first witness tells it."""
        self.count = 0
        self.first_offset: int | None = None
        self.forgotten_below = start_offset
        """Below this offset nothing is remembered."""
        self.vouched: list[tuple[int, int]] = []
        """Rows, from the first to the last, of stretches whose digest a witness confirms."""
        self._kept: list[Entry] = []
        self._by_hash: dict[bytes, Entry] = {}
        self._kept_max = kept_max

    @property
    def last(self) -> Entry | None:
        """The newest one."""
        return self._kept[-1] if self._kept else None

    def add(self, offset: int, record_hash: bytes, record: AuditRecord | None) -> Entry:
        """Note a record."""
        before = self._kept[-1].progress if self._kept else NOTHING_SEEN
        entry = Entry(self.count, before.after(offset, record_hash))
        if record is not None:
            entry.writer, entry.number = record.writer, record.number
        if self.first_offset is None:
            self.first_offset = offset
        self.count += 1
        self._kept.append(entry)
        self._by_hash.setdefault(record_hash, entry)
        if len(self._kept) >= 2 * self._kept_max:
            self._forget()
        return entry

    def _forget(self) -> None:
        """Remember the newer half: seldom, so that it costs little for each record."""
        oldest, self._kept = self._kept[: self._kept_max], self._kept[self._kept_max :]
        self.forgotten_below = max(self.forgotten_below, oldest[-1].offset + 1)
        for one in oldest:
            if self._by_hash.get(one.hash) is one:
                del self._by_hash[one.hash]

    def find(self, record_hash: bytes) -> Entry | None:
        """Return the record with this hash; of several the first."""
        return self._by_hash.get(record_hash)

    def is_vouched(self, entry: Entry) -> bool:
        """Tell whether another record says that this one is as it was."""
        at = entry.row
        return entry.is_named or any(first <= at <= last for first, last in self.vouched)

    def rows(self, first: int, past: int) -> list[Entry]:
        """Return the records of some rows, as far as they are remembered."""
        oldest = self.count - len(self._kept)
        return self._kept[max(0, first - oldest) : max(0, past - oldest)]

    # --- digests --------------------------------------------------------------------------------

    def digest_before(self, row: int) -> bytes:
        """Return the digest of everything before a row."""
        found = self.rows(row - 1, row) if row else []
        return found[0].progress.digest if found else NOTHING_SEEN.digest

    def rebase(self, entry: Entry, digest: bytes) -> None:
        """Believe that `digest` is the one up to `entry`, and go on from there."""
        entry.progress = Progress(entry.offset, entry.hash, digest)
        self._go_on(entry.progress, entry.row + 1)

    def begin_with(self, digest: bytes) -> None:
        """Believe that `digest` is the one of what has expired."""
        self._go_on(Progress(self.start - 1, NOTHING_SEEN.hash, digest), 0)

    def _go_on(self, before: Progress, row: int) -> None:
        self.has_base = True
        for one in self.rows(row, self.count):
            before = one.progress = before.after(one.offset, one.hash)
