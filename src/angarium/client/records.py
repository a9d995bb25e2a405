"""What a reader gets: records one by one, or batches as they are stored."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

from angarium.batch import AT_ONCE, NEVER, NO_TIMESTAMP, Batch, BatchSlice
from angarium.batch.deadlines import outside
from angarium.client.headers import NO_HEADERS, RecordHeaders
from angarium.client.times import moment
from angarium.ids import Micros, NodeId, Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from angarium.batch.deadlines import Ranges
    from angarium.batch.section import HeaderColumn
    from angarium.ids import Buffer

_T = TypeVar("_T")


class Record(msgspec.Struct, frozen=True, gc=False):
    """A user's data, where it is stored, and its times (in microseconds since 1970)."""

    topic: str
    partition: int
    offset: Offset | None
    """None for a PERFORMANCE record, which is stored nowhere."""
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = NO_HEADERS
    timestamp: Micros = NO_TIMESTAMP
    """The producer's; 0 where it gave none."""
    append_time: Micros = Micros(0)
    """The leader's; 0 for a PERFORMANCE record."""
    expires_at: Micros = NEVER
    deliver_at: Micros = AT_ONCE

    @property
    def text(self) -> str:
        """The value as UTF-8; empty where there is none. `UnicodeDecodeError` if it is no text."""
        return (self.value or b"").decode()

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, shape: type[_T]) -> _T: ...
    def json(self, shape: Any = Any) -> Any:
        """Return the value, read as JSON; with a `shape` (a dataclass, a Struct) it has to fit.

        Raises `ValueError` if it does not.
        """
        return msgspec.json.decode(self.value or b"", type=shape)

    @property
    def timestamp_datetime(self) -> datetime | None:
        """When its producer says it happened; None where it gave no time."""
        return moment(self.timestamp)

    @property
    def append_datetime(self) -> datetime | None:
        """When the leader appended it; None for a PERFORMANCE record."""
        return moment(self.append_time)

    @property
    def expires_datetime(self) -> datetime | None:
        """When nobody sees it any more; None if that never happens."""
        return moment(self.expires_at)

    @property
    def deliver_datetime(self) -> datetime | None:
        """When queue and key groups got it at the earliest; None if it was not delayed."""
        return moment(self.deliver_at)


class Served(msgspec.Struct, frozen=True, gc=False):
    """Whose replica was read."""

    node: NodeId = NodeId(0)
    """0 if nobody said so."""
    region: str = ""
    staleness_ms: int = 0
    """How old what was read may be; 0 from the leader."""


NOBODY_SAID: Final = Served()


class ReceivedBatch(msgspec.Struct, frozen=True, gc=False):
    """Records of one partition that came together. Nothing is unpacked before it is asked for."""

    topic: str
    partition: int
    batch: Batch
    start: int
    stop: int
    """The positions in `batch` that are meant: a reader may begin in the middle."""
    is_live: bool = False
    """True for PERFORMANCE records, which have no offsets."""
    served: Served = NOBODY_SAID
    """Which node's replica it was read from."""

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in order."""
        batch, start, stop = self.batch, self.start, self.stop
        section, columns, header = batch.section, batch.columns, batch.header
        nothing: Iterable[None] = repeat(None)
        return map(
            Record,
            repeat(self.topic),
            repeat(self.partition),
            nothing if self.is_live else batch.offsets(start, stop),
            nothing if section.keys is None else section.keys.items(start, stop),
            section.values.items(start, stop),
            header_items(section.headers, start, stop),
            batch.timestamps()[start:stop] if columns.timestamps else repeat(header.timestamp_max),
            repeat(header.append_time),
            batch.expires_at()[start:stop] if columns.expires_at else repeat(header.expires_at_max),
            batch.deliver_at()[start:stop] if columns.deliver_at else repeat(header.deliver_at_max),
        )

    def values(self) -> list[bytes | None]:
        """Return the values: the fast way to read."""
        return self.batch.values(self.start, self.stop)

    def keys(self) -> list[bytes | None]:
        """Return the keys."""
        return self.batch.keys(self.start, self.stop)

    def offsets(self) -> Sequence[Offset]:
        """Return the offsets; a PERFORMANCE batch has none."""
        return () if self.is_live else self.batch.offsets(self.start, self.stop)

    def to_arrow(self) -> Any:
        """Return a `pyarrow.RecordBatch` (`angarium.batch.arrow.SCHEMA`), without copying contents.

        Needs the extra `angarium[arrow]`. The offsets of a PERFORMANCE batch count from 0.
        """
        from angarium.batch.arrow import to_arrow  # noqa: PLC0415 (an extra)

        # Arrow believes offsets without looking, so somebody has to have looked.
        checked = Batch.parse(self.batch.buffer, compacted=True)
        return to_arrow(BatchSlice(checked, self.start, self.stop))


def header_items(column: HeaderColumn | None, start: int, stop: int) -> Iterable[RecordHeaders]:
    """Return the headers of the records at positions `start` to `stop`."""
    if column is None:
        return repeat(NO_HEADERS)
    return map(RecordHeaders, column.items(start, stop))


def received(
    topic: str,
    partition: int,
    buffer: Buffer,
    *,
    from_offset: int,
    is_live: bool = False,
    served: Served = NOBODY_SAID,
) -> ReceivedBatch:
    """Return what of the batch in `buffer` a reader is to see: the records from an offset on.

    Raises `InvalidBatch` if its bytes are not those that were published.
    """
    batch = Batch.parse(buffer, compacted=True, contents=False)
    start = 0 if is_live else batch.position_of(Offset(from_offset))
    return ReceivedBatch(topic, partition, batch, start, batch.count, is_live, served)


def without(whole: ReceivedBatch, expired: Ranges) -> Iterator[ReceivedBatch]:
    """Yield what was received without what has expired; nothing is copied."""
    batch = whole.batch
    start = batch.offsets(whole.start, whole.start + 1)[0] if len(whole) else batch.next_offset
    for first, past in outside(expired, start=start, stop=batch.next_offset):
        left = batch.slice(Offset(first), Offset(past))
        if len(left):
            yield ReceivedBatch(
                whole.topic,
                whole.partition,
                batch,
                left.start,
                left.stop,
                whole.is_live,
                whole.served,
            )
