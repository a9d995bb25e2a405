"""Each writer's records, held against their own chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.api.audit import NO_HASH, AuditEvent
from angarium.security.audit.findings import Finding, Trouble, WriterSummary

if TYPE_CHECKING:
    from angarium.api.audit import AuditRecord
    from angarium.security.audit.entries import Entries, Entry

END = "end"
"""What a writer's last record says."""

DROP = "drop"
"""What a record says that stands for some that could not be written."""


@dataclass(slots=True)
class _Gap:
    """Numbers that are missing, so far."""

    first: int
    last: int
    after: int
    """The offset of the record before them, -1 if there is none."""
    before: int
    """The offset of the record behind them."""
    last_hash: str
    """Of the last of them, as the record behind them says."""


@dataclass(slots=True)
class _Writer:
    last: Entry
    first_number: int
    records: int = 0
    lost: int = 0
    has_ended: bool = False
    gaps: list[_Gap] = field(default_factory=list)
    breaks: list[tuple[Entry, Entry, str]] = field(default_factory=list)
    """Two neighbours of which the second names another hash than the first has, and that hash."""


class Writers:
    """All writers."""

    def __init__(self, entries: Entries, findings: list[Finding], *, is_whole: bool) -> None:
        """`is_whole`: nothing has expired, so every chain begins at 0."""
        self._entries = entries
        self._findings = findings
        self._is_whole = is_whole
        self._by_name: dict[str, _Writer] = {}
        self._changed: set[int] = set()
        self.explained: set[str] = set()
        """Hashes of records that are gone or changed, and have been told of."""

    def take(self, entry: Entry, record: AuditRecord) -> None:
        """Hold a record against those of its writer."""
        writer = self._by_name.get(entry.writer)
        if writer is None:
            writer = self._begun(entry, record)
        elif entry.number > writer.last.number:
            self._go_on(writer, entry, record.previous)
        else:
            self._comes_late(writer, entry)
            return
        if writer.has_ended:
            self._tell(Trouble.PUT_IN, entry, f"its writer had ended with {writer.last.number}")
        writer.last = entry
        writer.records += 1
        if record.event is AuditEvent.AUDIT and record.what == DROP:
            writer.lost += record.count
        if record.event is AuditEvent.AUDIT and record.what == END:
            writer.has_ended = True

    def changed(self, entry: Entry, why: str) -> None:
        """Tell that a record is not what it was; once for each."""
        if entry.offset not in self._changed:
            self._changed.add(entry.offset)
            self._tell(Trouble.CHANGED, entry, why)

    def finish(self) -> None:
        """Tell what the end of the topic has decided."""
        for name, writer in self._by_name.items():
            for gap in writer.gaps:
                self._tell_gap(name, gap)
            for first, second, named in writer.breaks:
                self._tell_break(first, second, named)

    def summaries(self) -> tuple[WriterSummary, ...]:
        """Return who wrote, in the order in which they began."""
        return tuple(
            WriterSummary(
                writer=name,
                records=one.records,
                first_number=one.first_number,
                last_number=one.last.number,
                has_ended=one.has_ended,
                lost=one.lost,
            )
            for name, one in self._by_name.items()
        )

    # --- one record -----------------------------------------------------------------------------

    def _begun(self, entry: Entry, record: AuditRecord) -> _Writer:
        writer = self._by_name[entry.writer] = _Writer(entry, entry.number)
        if entry.number and self._is_whole:
            gap = _Gap(0, entry.number - 1, -1, entry.offset, record.previous)
            writer.gaps.append(gap)
            writer.first_number = 0
        elif not entry.number and record.previous != NO_HASH:
            self.changed(entry, "it is its writer's first, and names one before it")
        return writer

    def _go_on(self, writer: _Writer, entry: Entry, previous: str) -> None:
        last = writer.last
        if entry.number > last.number + 1:
            gap = _Gap(last.number + 1, entry.number - 1, last.offset, entry.offset, previous)
            writer.gaps.append(gap)
        elif previous == last.hash.hex():
            last.is_named = True
        else:
            writer.breaks.append((last, entry, previous))

    def _comes_late(self, writer: _Writer, entry: Entry) -> None:
        """Judge a record whose number is not above the one before it."""
        writer.records += 1
        gap = next((one for one in writer.gaps if one.first <= entry.number <= one.last), None)
        if gap is not None:
            self._tell(
                Trouble.REORDERED,
                entry,
                f"it stands behind number {writer.last.number} (offset {writer.last.offset})",
            )
            writer.gaps.remove(gap)
            if gap.first < entry.number:
                part = _Gap(gap.first, entry.number - 1, gap.after, gap.before, "")
                writer.gaps.append(part)
            if entry.number < gap.last:
                part = _Gap(entry.number + 1, gap.last, gap.after, gap.before, gap.last_hash)
                writer.gaps.append(part)
            elif gap.last_hash == entry.hash.hex():
                entry.is_named = True
            return
        original = self._entries.find(entry.hash)
        if original is not None and original is not entry:
            where = f"it is the record at offset {original.offset} once more"
            self._tell(Trouble.REPEATED, entry, where)
        else:
            self._tell(Trouble.PUT_IN, entry, f"its writer had come to {writer.last.number}")

    # --- at the end -----------------------------------------------------------------------------

    def _tell_gap(self, name: str, gap: _Gap) -> None:
        self.explained.add(gap.last_hash)
        is_one = gap.first == gap.last
        what = f"number {gap.first}" if is_one else f"numbers {gap.first} to {gap.last}"
        where = f"behind offset {gap.after}" if gap.after >= 0 else "at the beginning"
        self._findings.append(
            Finding(
                trouble=Trouble.REMOVED,
                sentence=f"{what} of writer {name} {'is' if is_one else 'are'} missing {where},"
                f" before offset {gap.before}",
                offset=gap.after + 1,
                until_offset=gap.before,
                writer=name,
                number=gap.first,
                until_number=gap.last,
            )
        )

    def _tell_break(self, first: Entry, second: Entry, named: str) -> None:
        """Say which of two neighbours is not what it was: the one that nobody else vouches for."""
        self.explained.add(named)
        if {first.offset, second.offset} & self._changed:
            return
        is_second_sure = self._entries.is_vouched(second)
        if self._entries.is_vouched(first) and not is_second_sure:
            self.changed(second, f"it does not follow number {first.number}, as it should")
            return
        why = f"number {second.number} (offset {second.offset}) follows another record"
        if not is_second_sure:
            why += ", or was changed itself"
        self.changed(first, why)

    def _tell(self, trouble: Trouble, entry: Entry, why: str) -> None:
        self._findings.append(
            Finding(
                trouble=trouble,
                sentence=f"the record at offset {entry.offset}, number {entry.number} of writer"
                f" {entry.writer}, was {trouble}: {why}",
                offset=entry.offset,
                writer=entry.writer,
                number=entry.number,
            )
        )
