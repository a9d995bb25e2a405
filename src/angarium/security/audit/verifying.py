"""Checking audit records: which one was removed, changed, moved, repeated or put in.

Records come in the order of the topic. Each is held against its writer's chain (`writers`), and
what it says it had seen of the topic against what is there (`witnesses`). The chain says exactly
which record is concerned; what was seen covers the order between writers, and the ends of chains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api.audit import decoded
from angarium.security.audit.chain import hash_of, progress_of
from angarium.security.audit.entries import Entries
from angarium.security.audit.findings import Finding, Report, Trouble
from angarium.security.audit.witnesses import Witnesses
from angarium.security.audit.writers import Writers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api.audit import Seen


class Verifier:
    """Takes the records of a topic one after the other, then tells what is wrong with them."""

    def __init__(self, *, start_offset: int = 0, anchors: Iterable[Seen] = ()) -> None:
        """The topic begins at `start_offset`: what was before has expired. `anchors` are what
        somebody has kept elsewhere."""
        self._start = start_offset
        self._entries = Entries(start_offset)
        self._findings: list[Finding] = []
        self._writers = Writers(self._entries, self._findings, is_whole=start_offset == 0)
        self._witnesses = Witnesses(self._entries, self._findings, tuple(anchors))
        self._next = start_offset
        self._gaps: list[tuple[int, int]] = []

    def take(self, offset: int, value: bytes | None, *, told_hash: str | None = None) -> None:
        """Take the record at `offset`; `told_hash` is its header `sha256`, None without one."""
        if offset > self._next:
            self._gaps.append((self._next, offset - 1))
        self._next = max(self._next, offset + 1)
        content = value or b""
        record = decoded(content)
        entry = self._entries.add(offset, hash_of(content), record)
        if record is None:
            said = f"the record at offset {offset} is no audit record"
            self._findings.append(Finding(trouble=Trouble.UNREADABLE, sentence=said, offset=offset))
        else:
            if told_hash is not None and told_hash != entry.hash.hex():
                self._writers.changed(entry, "its value does not have the hash that came with it")
                self._writers.explained.add(told_hash)
            self._writers.take(entry, record)
        self._witnesses.take(entry, None if record is None else progress_of(record.seen))

    def report(self) -> Report:
        """Return what was found."""
        self._writers.finish()
        self._tell_gaps()
        self._witnesses.finish(self._writers.explained, end=self._next)
        findings = sorted(self._findings, key=lambda one: (one.offset, one.trouble))
        head = self._entries.last
        notes = list(self._witnesses.notes)
        if self._start and head is not None:
            notes.insert(
                0,
                f"the topic begins at offset {self._start}: that what was before has expired, and"
                " was not removed, cannot be shown",
            )
        return Report(
            records=self._entries.count,
            first_offset=self._entries.first_offset,
            findings=tuple(findings),
            notes=tuple(notes),
            writers=self._writers.summaries(),
            unvouched=self._witnesses.unvouched(),
            head=None if head is None else head.progress.seen,
        )

    def _tell_gaps(self) -> None:
        """Tell of offsets that nobody has, unless chains have told which records those were."""
        for first, last in self._gaps:
            told = sum(
                (one.until_number or 0) - (one.number or 0) + 1
                for one in self._findings
                if one.trouble is Trouble.REMOVED
                and one.number is not None
                and one.offset <= first
                and last <= (one.until_offset or one.offset)
            )
            if told > last - first:
                continue
            what = f"offset {first} is" if first == last else f"offsets {first} to {last} are"
            self._findings.append(
                Finding(
                    trouble=Trouble.REMOVED,
                    sentence=f"{what} missing",
                    offset=first,
                    until_offset=last,
                )
            )
