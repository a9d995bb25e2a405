"""What records, and anchors, say they had seen of the topic, held against what is there."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from angarium.security.audit.chain import progress_of
from angarium.security.audit.findings import Finding, Trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from angarium.api.audit import Seen
    from angarium.security.audit.chain import Progress
    from angarium.security.audit.entries import Entries, Entry

EXPLAINED_MAX: Final = 32
"""In a longer stretch it is not tried out which single record was moved or put in."""


class Witnesses:
    """Compares digests, and narrows down where they part."""

    def __init__(self, entries: Entries, findings: list[Finding], anchors: Sequence[Seen]) -> None:
        self._entries = entries
        self._findings = findings
        self._anchors: dict[bytes, Progress] = {}
        self._bad_anchors = 0
        for one in anchors:
            found = progress_of(one)
            if found is None:
                self._bad_anchors += 1
            else:
                self._anchors[found.hash] = found
        self._absent: dict[bytes, tuple[int, Entry]] = {}
        """By hash, what was seen and is not here: at which offset, and by whom."""
        self._moved: set[int] = set()
        """Rows that were told to be out of order."""
        self._parted: list[tuple[int, int, str]] = []
        """Stretches whose digest is another than was seen: first and last offset, and by whom."""
        self._sure = -1
        """Up to this row the digest is what the last witness saw."""
        self._shift: int | None = None
        self._unchecked = 0
        self.notes: list[str] = []

    def take(self, entry: Entry, seen: Progress | None) -> None:
        """Hear what a record had seen, and whether it is what others have seen before it came."""
        early = self._absent.pop(entry.hash, None)
        if early is not None:
            self._tell_early(early[1], entry)
        anchor = self._anchors.pop(entry.hash, None)
        if seen is not None:
            self._hear(seen, entry)
        if anchor is not None:
            self._compare(entry, anchor.digest, "the anchor")

    def finish(self, explained: Iterable[str], *, end: int) -> None:
        """Tell what was seen and is not here, unless chains have told which record it was."""
        known = set(explained)
        for found, (offset, witness) in self._absent.items():
            if found.hex() not in known and not self._is_among_removed(offset):
                self._tell(
                    Trouble.ALTERED,
                    f"the record that {_named(witness)} saw at offset {offset} is gone, or was"
                    " changed",
                    offset,
                )
        for first, last, who in self._parted:
            if not self._is_told(first, last):
                self._tell_parted(first, last, who)
        for one in self._anchors.values():
            self._judge_anchor(one, end)
        if self._bad_anchors:
            self.notes.append("an anchor has no hash and digest that make sense: it was not used")
        if self._unchecked:
            self.notes.append(
                f"{self._unchecked} records saw only what has expired, or is too far back to check"
            )
        if self._shift:
            self.notes.append(
                f"records stand {self._shift} offsets below where they were written: this is a"
                " copy, or records before them are gone"
            )

    def unvouched(self) -> int:
        """Return how many records at the end nobody vouches for."""
        last = self._entries.last
        if last is None:
            return 0
        newest = self._entries.rows(self._sure + 1, last.row + 1)
        return sum(1 for one in newest if not one.is_named)

    # --- what was seen --------------------------------------------------------------------------

    def _hear(self, seen: Progress, witness: Entry) -> None:
        entries = self._entries
        entry = entries.find(seen.hash)
        if entry is None:
            if not entries.has_base and seen.offset == entries.start - 1:
                entries.begin_with(seen.digest)
            elif seen.offset - (self._shift or 0) < entries.forgotten_below:
                self._unchecked += 1
            else:
                self._absent.setdefault(seen.hash, (seen.offset, witness))
            return
        self._shift = seen.offset - entry.offset
        entry.is_named = True
        self._compare(entry, seen.digest, _named(witness))

    def _compare(self, entry: Entry, digest: bytes, who: str) -> None:
        entries = self._entries
        if entry.row <= self._sure:
            return  # somebody who had read further has confirmed it already
        if not entries.has_base:
            # What was before has expired, so the first digest that is told has to be believed.
            entries.rebase(entry, digest)
            entries.vouched.append((entry.row, entry.row))
        elif entry.progress.digest == digest:
            first = entries.vouched.pop()[0] if entries.vouched else 0
            entries.vouched.append((first, entry.row))
        else:
            entry = self._part(entry, digest, who)
        self._sure = entry.row

    def _part(self, entry: Entry, digest: bytes, who: str) -> Entry:
        """Note that something between the last confirmed record and this one was altered; return
        up to where `digest` counts."""
        entries = self._entries
        stretch = entries.rows(self._sure + 1, entry.row + 1)
        self._parted.append((stretch[0].offset, entry.offset, who))
        if len(stretch) <= EXPLAINED_MAX:
            entry = self._explain(stretch, digest, who)
        entries.rebase(entry, digest)
        entries.vouched.append((entry.row, entry.row))
        return entry

    def _explain(self, stretch: list[Entry], digest: bytes, who: str) -> Entry:
        """Try which one record, moved or left out, gives the digest that was seen; return the last
        of those that it is over."""
        base = self._entries.digest_before(stretch[0].row)
        past = stretch[-1].row + 1
        behind = self._entries.rows(past, past + 1)
        for entry, to, order in _moves([*stretch, *behind], len(stretch)):
            if _digest(base, order) == digest:
                self._tell_moved(entry, to, who)
                return max(order, key=lambda one: one.row)
        for at, entry in enumerate(stretch):
            if _digest(base, [*stretch[:at], *stretch[at + 1 :]]) == digest:
                if not self._is_told(entry.offset, entry.offset - 1):
                    why = f"{who} has seen what is around it without it"
                    self._tell_one(Trouble.PUT_IN, entry, why)
                break
        return stretch[-1]

    # --- telling --------------------------------------------------------------------------------

    def _is_among_removed(self, offset: int) -> bool:
        """Tell whether that offset is told to be missing, or a chain lacks several records there,
        of which it names the last one's hash alone."""
        return any(
            one.trouble is Trouble.REMOVED
            and (one.number is None or one.number != one.until_number)
            and one.offset <= at <= (one.until_offset or one.offset)
            for one in self._findings
            for at in (offset, offset - (self._shift or 0))
        )

    def _is_told(self, first: int, last: int) -> bool:
        """Tell whether a finding says what is wrong in a stretch."""
        return any(
            one.offset <= last + 1 and (one.until_offset or one.offset) >= first
            for one in self._findings
        )

    def _tell_parted(self, first: int, last: int, who: str) -> None:
        where = f"offset {first} is" if first == last else f"offsets {first} to {last} are"
        self._findings.append(
            Finding(
                trouble=Trouble.ALTERED,
                sentence=f"{where} not what {who} has seen: something there, or before the first of"
                " them, was removed, changed, put in or moved",
                offset=first,
                until_offset=last,
            )
        )

    def _judge_anchor(self, anchor: Progress, end: int) -> None:
        """Say what it means that the record of an anchor did not come."""
        if anchor.offset < self._entries.start:
            self.notes.append(
                f"what the anchor has seen, up to offset {anchor.offset}, has expired: nothing can"
                " be held against it"
            )
        elif anchor.offset >= end:
            self._tell(
                Trouble.CUT_OFF,
                f"the topic ends before offset {end}, and the anchor has seen offset"
                f" {anchor.offset}: at least {anchor.offset + 1 - end} records were removed",
                end,
                until=anchor.offset,
            )
        else:
            self._tell(
                Trouble.ALTERED,
                f"the record that the anchor saw at offset {anchor.offset} is gone, or was changed",
                anchor.offset,
            )

    def _tell(self, trouble: Trouble, said: str, offset: int, *, until: int | None = None) -> None:
        finding = Finding(trouble=trouble, sentence=said, offset=offset, until_offset=until)
        self._findings.append(finding)

    def _tell_early(self, witness: Entry, entry: Entry) -> None:
        """Tell of a record that stands before one that its writer had seen."""
        self._moved |= {witness.row, entry.row}
        why = f"its writer had seen the record that stands at offset {entry.offset}, behind it"
        self._tell_one(Trouble.REORDERED, witness, why)

    def _tell_moved(self, entry: Entry, to: Entry, who: str) -> None:
        if not {entry.row, to.row} & self._moved:
            self._moved |= {entry.row, to.row}
            why = f"as {who} shows, it stood where offset {to.offset} is now"
            self._tell_one(Trouble.REORDERED, entry, why)

    def _tell_one(self, trouble: Trouble, entry: Entry, why: str) -> None:
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


def _moves(entries: list[Entry], count: int) -> Iterator[tuple[Entry, Entry, list[Entry]]]:
    """Yield every order of the first `count` that one move makes: what is moved, and to where.

    A record that stands right behind them may belong among them.
    """
    for at, moved in enumerate(entries):
        rest = [*entries[:at], *entries[at + 1 :]]
        for to in range(len(rest) + 1):
            if to != at:
                order = [*rest[:to], moved, *rest[to:]]
                yield moved, entries[to], order[:count]
                if len(order) > count:
                    yield moved, entries[to], order


def _named(witness: Entry) -> str:
    return f"the record at offset {witness.offset}"


def _digest(base: bytes, entries: Iterable[Entry]) -> bytes:
    digest = base
    for one in entries:
        digest = sha256(digest + one.hash).digest()
    return digest
