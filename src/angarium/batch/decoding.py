"""Reading a batch: one record, all of them, a range.

A `Batch` is a view: it holds the buffer it was given and copies nothing but what is asked for. It
does not notice when the buffer is stamped afterwards, so stamp first and look then. A compressed
section is unpacked on first use and kept as long as the batch.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, cast

import msgspec

from angarium.batch.batch_limits import DEFAULT_LIMITS, BatchLimits
from angarium.batch.compaction import retained
from angarium.batch.layout import (
    AT_ONCE,
    HEADER_BYTES,
    NEVER,
    NO_TIMESTAMP,
    Codec,
    FixedColumns,
    Header,
    fixed_columns,
    unpacked_header,
)
from angarium.batch.section import Headers, Section
from angarium.batch.stamping import batch_length, verify_checksums
from angarium.batch.validation import (
    checked_columns,
    checked_header,
    checked_section,
    located_section,
)
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Sequence as SequenceOf

    from angarium.ids import Buffer


class Record(msgspec.Struct, frozen=True, gc=False):
    """A user's data, with its offset and its times (all in microseconds since 1970)."""

    offset: Offset
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: Micros = NO_TIMESTAMP
    """The producer's; 0 where it gave none."""
    append_time: Micros = Micros(0)
    """The leader's; 0 before the batch is stamped."""
    expires_at: Micros = NEVER
    """The record is gone once the clock is here; `NEVER` is later than every clock."""
    deliver_at: Micros = AT_ONCE
    """The record is not delivered before; 0 is earlier than every clock."""


class Batch:
    """An immutable, columnar batch of records."""

    __slots__ = ("_section", "buffer", "columns", "header")

    buffer: memoryview
    """The whole batch, and nothing else."""
    header: Header
    columns: FixedColumns
    """Where the fixed columns lie in `buffer`."""

    def __init__(self, buffer: memoryview, header: Header, columns: FixedColumns) -> None:
        """Not for callers: use `Batch.parse` or `Batch.trusted`."""
        self.buffer = buffer
        self.header = header
        self.columns = columns
        self._section: Section | None = None

    @classmethod
    def parse(
        cls,
        buffer: Buffer,
        *,
        limits: BatchLimits = DEFAULT_LIMITS,
        compacted: bool = False,
        contents: bool = True,
    ) -> Batch:
        """Return the batch in `buffer`, of which nothing is believed; `InvalidBatch` says why not.

        A producer's batch is never `compacted`: one that is could claim any number of offsets.
        Without `contents`, a section is neither unpacked nor looked into; do so before reading it.
        """
        view = memoryview(buffer)
        header = checked_header(view, limits=limits, compacted=compacted)
        batch = cls(view, header, checked_columns(view, header))
        if contents:
            batch._section = checked_section(view, header, batch.columns, limits=limits)
        return batch

    @classmethod
    def trusted(cls, buffer: Buffer) -> Batch:
        """Return the batch at the start of `buffer`, which passed `parse` or `verify` before.

        Only the header is read. Bytes after the batch's end are left out of the view.
        """
        if len(buffer) < HEADER_BYTES:
            raise InvalidBatch(f"{len(buffer)} bytes are less than a batch's header")
        header = unpacked_header(buffer)
        if header.length > len(buffer):
            raise InvalidBatch(f"a batch of {header.length} bytes is cut off at {len(buffer)}")
        view = memoryview(buffer)[: header.length]
        return cls(view, header, fixed_columns(header.flags, header.count))

    def verify(self) -> None:
        """Raise `InvalidBatch` unless both checksums hold (an unstamped batch has only one)."""
        if batch_length(self.buffer) != len(self.buffer):
            raise InvalidBatch("the declared length is not the length of the batch")
        verify_checksums(self.buffer, unpacked_header(self.buffer))

    # --- what the leader assigned ---------------------------------------------------------

    @property
    def is_stamped(self) -> bool:
        """Whether a leader has numbered the batch."""
        return self.header.term != 0

    @property
    def base_offset(self) -> Offset:
        """The offset of the first record, or of the one that was first before compaction."""
        return self.header.base_offset

    @property
    def next_offset(self) -> Offset:
        """The first offset after the batch."""
        return Offset(self.header.base_offset + self.header.span)

    @property
    def last_offset(self) -> Offset:
        """The last offset that the batch spans."""
        return Offset(self.header.base_offset + self.header.span - 1)

    @property
    def term(self) -> Term:
        """The leader's term; 0 before the batch is stamped."""
        return self.header.term

    @property
    def append_time(self) -> Micros:
        """When the leader appended the batch; 0 before it is stamped."""
        return self.header.append_time

    # --- what the client wrote -------------------------------------------------------------

    @property
    def length(self) -> int:
        """The batch's length in bytes."""
        return self.header.length

    @property
    def count(self) -> int:
        """How many records there are."""
        return self.header.count

    @property
    def span(self) -> int:
        """How many offsets the batch takes: its count, unless it has been compacted."""
        return self.header.span

    @property
    def is_compacted(self) -> bool:
        """Whether some of the spanned offsets may have no record any more."""
        return self.columns.offset_deltas != 0

    @property
    def codec(self) -> Codec:
        """How the section is compressed."""
        return Codec(self.header.codec)

    @property
    def producer_id(self) -> ProducerId:
        """Who produced the batch; 0 for nobody in particular."""
        return self.header.producer_id

    @property
    def epoch(self) -> Epoch:
        """Which life of the producer it was."""
        return self.header.epoch

    @property
    def first_sequence(self) -> Sequence:
        """The producer's number for the first record; the next ones follow one by one."""
        return self.header.sequence

    @property
    def last_sequence(self) -> Sequence:
        """The producer's number for the last record that the batch had when it was produced."""
        return Sequence(self.header.sequence + self.header.span - 1)

    @property
    def min_timestamp(self) -> Micros:
        """No record has an earlier timestamp."""
        return self.header.timestamp_min

    @property
    def max_timestamp(self) -> Micros:
        """No record has a later timestamp; 0 if there are none."""
        return self.header.timestamp_max

    @property
    def min_expires_at(self) -> Micros:
        """Before this nothing has expired."""
        return self.header.expires_at_min

    @property
    def max_expires_at(self) -> Micros:
        """From here on everything has expired; `NEVER` if some record does not."""
        return self.header.expires_at_max

    @property
    def min_deliver_at(self) -> Micros:
        """Before this nothing is due."""
        return self.header.deliver_at_min

    @property
    def max_deliver_at(self) -> Micros:
        """From here on everything is due; 0 if nothing was ever delayed."""
        return self.header.deliver_at_max

    # --- records ---------------------------------------------------------------------------

    @property
    def section(self) -> Section:
        """Values, keys and headers, unpacked on first use."""
        if self._section is None:
            self._section = located_section(self.buffer, self.header, self.columns)
        return self._section

    def __len__(self) -> int:
        """Return how many records there are."""
        return self.header.count

    def __iter__(self) -> Iterator[Record]:
        """Yield all records in order of their offsets."""
        return self.records(0, self.header.count)

    def record(self, position: int) -> Record:
        """Return the record at `position`, counted from 0."""
        if not 0 <= position < self.header.count:
            raise IndexError(f"position {position} in a batch of {self.header.count} records")
        return next(self.records(position, position + 1))

    def records(self, start: int, stop: int) -> Iterator[Record]:
        """Yield the records at positions `start` to `stop`."""
        section = self.section
        return map(
            Record,
            self.offsets(start, stop),
            repeat(None) if section.keys is None else section.keys.items(start, stop),
            section.values.items(start, stop),
            repeat(()) if section.headers is None else section.headers.items(start, stop),
            self._times(self.columns.timestamps, self.header.timestamp_max, start, stop),
            repeat(self.header.append_time),
            self._times(self.columns.expires_at, self.header.expires_at_max, start, stop),
            self._times(self.columns.deliver_at, self.header.deliver_at_max, start, stop),
        )

    def values(self, start: int = 0, stop: int | None = None) -> list[bytes | None]:
        """Return the values at positions `start` to `stop`: the fast way to read."""
        return self.section.values.items(start, self.header.count if stop is None else stop)

    def keys(self, start: int = 0, stop: int | None = None) -> list[bytes | None]:
        """Return the keys at positions `start` to `stop`."""
        stop = self.header.count if stop is None else stop
        keys = self.section.keys
        return [None] * (stop - start) if keys is None else keys.items(start, stop)

    def offsets(self, start: int, stop: int) -> SequenceOf[Offset]:
        """Return the offsets of the records at positions `start` to `stop`."""
        base = self.header.base_offset
        if not self.columns.offset_deltas:
            return cast("SequenceOf[Offset]", range(base + start, base + stop))
        return [Offset(base + delta) for delta in self.offset_deltas()[start:stop]]

    def timestamps(self) -> SequenceOf[Micros]:
        """Return each record's timestamp."""
        return self._all_times(self.columns.timestamps, self.header.timestamp_max)

    def expires_at(self) -> SequenceOf[Micros]:
        """Return each record's expiry time, without unpacking the section."""
        return self._all_times(self.columns.expires_at, self.header.expires_at_max)

    def deliver_at(self) -> SequenceOf[Micros]:
        """Return each record's delivery time, without unpacking the section."""
        return self._all_times(self.columns.deliver_at, self.header.deliver_at_max)

    def key_hashes(self) -> memoryview | None:
        """Return each record's key hash (0: no key), or None if the producer left them out."""
        start = self.columns.key_hashes
        return self.buffer[start : start + 4 * self.header.count].cast("I") if start else None

    def offset_deltas(self) -> memoryview:
        """Return each record's distance from the base offset, in a compacted batch."""
        start = self.columns.offset_deltas
        assert start, "only a compacted batch has offset deltas"
        return self.buffer[start : start + 4 * self.header.count].cast("i")

    def position_of(self, offset: Offset) -> int:
        """Return the position of the first record at or after `offset`; `count` if none is."""
        delta = offset - self.header.base_offset
        if self.columns.offset_deltas:
            return bisect_left(self.offset_deltas(), delta)
        return min(max(delta, 0), self.header.count)

    def slice(self, start_offset: Offset, stop_offset: Offset) -> BatchSlice:
        """Return the records with offsets from `start_offset` up to below `stop_offset`."""
        start = self.position_of(start_offset)
        return BatchSlice(self, start, max(start, self.position_of(stop_offset)))

    def retain(self, positions: Iterable[int], *, codec: Codec | None = None) -> bytearray:
        """Return a compacted batch with only the records at `positions` (ascending).

        It keeps the span, the producer and the stamp, so that no other offset changes; and how it
        is compressed, unless a `codec` is named.
        """
        return retained(self, list(positions), codec=codec)

    def _all_times(self, start: int, constant: Micros) -> SequenceOf[Micros]:
        if start:
            return cast(
                "SequenceOf[Micros]", self.buffer[start:][: 8 * self.header.count].cast("q")
            )
        return [constant] * self.header.count

    def _times(self, column: int, constant: Micros, start: int, stop: int) -> Iterable[Micros]:
        if not column:
            return repeat(constant)
        return cast(
            "Iterable[Micros]", self.buffer[column + 8 * start : column + 8 * stop].cast("q")
        )


@dataclass(frozen=True, slots=True)
class BatchSlice:
    """Part of a batch: the whole of it, and which positions are meant. Nothing is copied."""

    batch: Batch
    start: int
    stop: int

    def __len__(self) -> int:
        """Return how many records are meant."""
        return self.stop - self.start

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in order of their offsets."""
        return self.batch.records(self.start, self.stop)

    def values(self) -> list[bytes | None]:
        return self.batch.values(self.start, self.stop)

    def offsets(self) -> SequenceOf[Offset]:
        return self.batch.offsets(self.start, self.stop)
