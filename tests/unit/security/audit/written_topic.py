"""An audit topic in memory: several writers, each of which has read as far as it has."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from angarium.api.audit import AuditEvent, AuditOutcome, AuditRecord, Seen, decoded, encoded
from angarium.security.audit import NOTHING_SEEN, Chain, Progress, Report, Verifier, hash_of


class Stored(NamedTuple):
    """A record as it lies in the topic."""

    offset: int
    value: bytes
    told_hash: str

    @property
    def record(self) -> AuditRecord:
        found = decoded(self.value)
        assert found is not None
        return found

    def rewritten(self, **changes: object) -> Stored:
        """Return it with other content, and with the hash of that."""
        value = encoded(msgspec.structs.replace(self.record, **changes))
        return Stored(self.offset, value, hash_of(value).hex())


class WrittenTopic:
    """Writers publish; each has seen the topic up to where it last looked."""

    def __init__(self) -> None:
        self.stored: list[Stored] = []
        self._chains: dict[str, Chain] = {}
        self._seen: dict[str, Progress] = {}

    def look(self, writer: str) -> None:
        """Let a writer read what is there."""
        progress = NOTHING_SEEN
        for one in self.stored:
            progress = progress.after(one.offset, hash_of(one.value))
        self._seen[writer] = progress

    def write(self, writer: str, *, looks: bool = True, **fields: object) -> Stored:
        """Let a writer write, after a look at what is there or without one."""
        if looks:
            self.look(writer)
        chain = self._chains.setdefault(writer, Chain(writer))
        record = AuditRecord(
            time=f"2026-11-03T12:00:00.{len(self.stored):06d}Z",
            node=int(writer.partition("-")[0]),
            event=fields.pop("event", AuditEvent.ACTION),  # type: ignore[arg-type]
            outcome=AuditOutcome.ALLOWED,
            **fields,  # type: ignore[arg-type]
        )
        value, found = chain.linked(record, self._seen.get(writer, NOTHING_SEEN).seen)
        self.stored.append(Stored(len(self.stored), value, found.hex()))
        return self.stored[-1]

    def anchor(self) -> Seen:
        """Return what somebody may keep elsewhere."""
        head = checked(self.stored).head
        assert head is not None
        return head


def checked(
    stored: list[Stored], *, start_offset: int = 0, anchors: tuple[Seen, ...] = ()
) -> Report:
    """Return what a check of these records finds."""
    verifier = Verifier(start_offset=start_offset, anchors=anchors)
    for one in stored:
        verifier.take(one.offset, one.value, told_hash=one.told_hash)
    return verifier.report()


def renumbered(stored: list[Stored]) -> list[Stored]:
    """Return records at offsets without a gap, as in a copy."""
    return [one._replace(offset=at) for at, one in enumerate(stored)]
