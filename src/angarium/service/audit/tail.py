"""How far a node has read `angarium.audit`: what its next record says that it had seen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from angarium.api import FetchRequest, Start, StartAt
from angarium.api.audit import AUDIT_TOPIC, AuditEvent, decoded
from angarium.api.stored_records import fetched_records
from angarium.ids import Offset
from angarium.security.audit import NOTHING_SEEN, Progress, hash_of
from angarium.security.audit.chain import progress_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Broker
    from angarium.api.audit import Seen
    from angarium.batch import Record

WITNESS: Final = "witness"
"""What a record says that was written only to vouch for those of others."""

LOOK_BACK: Final = 1_000
"""How many of the newest records a node looks at to learn the digest, when it starts. Each of them
has one of a moment before it, so that the newest would nearly always do."""

FRESH_S: Final = 1.0
"""Who has looked so lately does not look again before it writes: of several actions in a row only
the first one waits for a look."""

PAGES_MAX: Final = 64
"""Fetches before a record is written. A node that is further behind says how far it has come."""


class Tail:
    """Reads the topic forward, and keeps the digest."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._progress: Progress | None = None
        """None: not known yet."""
        self._looked_at = -FRESH_S
        self.has_news = False
        """Whether somebody has written something to vouch for."""

    @property
    def seen(self) -> Seen | None:
        """What a record may say that it had seen."""
        return None if self._progress is None else self._progress.seen

    async def catch_up(self, own_writer: str) -> None:
        """Read what has come; raises what reading raises, and keeps what it had."""
        if self._progress is None:
            await self._begin()
        for _ in range(PAGES_MAX):
            if self._progress is None:
                return
            after = self._progress.offset + 1
            records, end = await self._read(after)
            if not records:
                break
            if records[0].offset != after:
                self._progress = None  # what comes next was trimmed meanwhile
                return
            self._take(records, own_writer)
            if self._progress.offset + 1 >= end:
                break
        self._looked_at = time.monotonic()

    @property
    def is_stale(self) -> bool:
        """Whether it is a while ago that the topic was looked at."""
        return time.monotonic() - self._looked_at > FRESH_S

    def wrote(self, base_offset: int | None, hashes: Sequence[bytes]) -> None:
        """Hear what this node itself has written; where it follows what was read, it counts as
        read."""
        if self._progress is None or base_offset != self._progress.offset + 1:
            return
        for at, one in enumerate(hashes, base_offset):
            self._progress = self._progress.after(at, one)

    def _take(self, records: Sequence[Record], own_writer: str) -> None:
        assert self._progress is not None
        for one in records:
            value = one.value or b""
            self._progress = self._progress.after(one.offset, hash_of(value))
            record = decoded(value)
            if record is not None and record.writer != own_writer:
                is_witness = record.event is AuditEvent.AUDIT and record.what == WITNESS
                self.has_news = self.has_news or not is_witness

    async def _begin(self) -> None:
        """Learn the digest from the newest records, or begin with the topic."""
        find = self._broker.find_offset
        start = await find(AUDIT_TOPIC, 0, Start(StartAt.EARLIEST))
        end = await find(AUDIT_TOPIC, 0, Start(StartAt.LATEST))
        first = max(start, end - LOOK_BACK)
        records: list[Record] = []
        at = first
        while at < end:
            found, _ = await self._read(at)
            if not found:
                break
            records += found
            at = found[-1].offset + 1
        self._progress = learnt(records, first=first, is_whole=first == start)

    async def _read(self, offset: int) -> tuple[list[Record], int]:
        """Return records from an offset on, and the end of the topic."""
        request = FetchRequest(topic=AUDIT_TOPIC, partition=0, offset=Offset(offset))
        result = await self._broker.fetch(request)
        return fetched_records(result, request, limit=LOOK_BACK)[0], result.end_offset


def learnt(records: Sequence[Record], *, first: int, is_whole: bool) -> Progress | None:
    """Return how far one has come who knows these records, the newest of the topic; None if they do
    not say.

    The newest record that had seen something of what is here, or just before it, tells the digest.
    Where none has, and they are all there is, it begins with them.
    """
    for one in reversed(records):
        record = decoded(one.value or b"")
        told = None if record is None else progress_of(record.seen)
        if told is not None and first - 1 <= told.offset < one.offset:
            break
    else:
        if not is_whole:
            return None
        told = NOTHING_SEEN if first == 0 else Progress(first - 1, bytes(32), bytes(32))
    for one in records:
        if one.offset > told.offset:
            told = told.after(one.offset, hash_of(one.value or b""))
    return told
