"""Batches as Arrow record batches, and back. The only module here that needs pyarrow.

The section's buffers *are* Arrow buffers: `to_arrow` wraps them where they lie and copies nothing
of keys, values and headers (a compressed section is unpacked first). Made anew are only the
columns that a batch keeps as one number: offsets, append time, and times that all records share.
The wrapped bytes must not change afterwards; Arrow holds on to them as long as it needs them.

Only hand over batches that passed `Batch.parse` once: Arrow believes offsets without looking.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from angarium.batch.columns import Column, header_column, piece
from angarium.batch.decoding import Batch, BatchSlice
from angarium.batch.encoding import assembled, encoded_times, hash_column
from angarium.batch.layout import (
    AT_ONCE,
    FIRST_EPOCH,
    FIRST_SEQUENCE,
    HEADER_NULLS,
    HEADERS,
    KEY_NULLS,
    KEYS,
    NEVER,
    NO_TIMESTAMP,
    VALUE_NULLS,
    Codec,
    bitmap_bytes,
)
from angarium.errors import InvalidBatch
from angarium.ids import NO_PRODUCER

if TYPE_CHECKING:
    from angarium.batch.section import BinaryColumn, HeaderColumn
    from angarium.ids import Buffer, Epoch, ProducerId, Sequence

_INT64: Final = struct.Struct("<q")
_BINARY: Final = pa.binary()
_INSTANT: Final = pa.timestamp("us", tz="UTC")
_ENTRIES: Final = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
_HEADERS: Final = pa.map_(pa.string(), pa.binary())

SCHEMA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", _INSTANT),
        ("producer_timestamp", _INSTANT),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
        ("expires_at", _INSTANT),
        ("deliver_at", _INSTANT),
    ]
)
"""What `to_arrow` returns. `timestamp` is the leader's append time; times not given are null."""


def to_arrow(batch: Batch | BatchSlice) -> pa.RecordBatch:
    """Return the records of `batch`, or of a part of one, with the columns of `SCHEMA`."""
    if isinstance(batch, BatchSlice):
        return to_arrow(batch.batch).slice(batch.start, len(batch))
    count, header, columns = batch.count, batch.header, batch.columns
    section = batch.section
    keys, headers = section.keys, section.headers
    return pa.RecordBatch.from_arrays(
        [
            _offsets(batch),
            _same_time(header.append_time, count),
            _times(batch, columns.timestamps, header.timestamp_max, none=NO_TIMESTAMP),
            _nulls(_NO_KEYS, count) if keys is None else _binary(keys, _BINARY),
            _binary(section.values, _BINARY),
            _no_headers(count) if headers is None else _headers(headers),
            _times(batch, columns.expires_at, header.expires_at_max, none=NEVER),
            _times(batch, columns.deliver_at, header.deliver_at_max, none=AT_ONCE),
        ],
        schema=SCHEMA,
    )


def as_table(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return what `to_arrow` made of several batches as one table; nothing is copied."""
    return pa.Table.from_batches(batches, SCHEMA)


def from_arrow(
    values: pa.Array,
    *,
    keys: pa.Array | None = None,
    headers: pa.Array | None = None,
    timestamps: int | pa.Array | None = None,
    expires_at: int | pa.Array | None = None,
    deliver_at: int | pa.Array | None = None,
    producer_id: ProducerId = NO_PRODUCER,
    epoch: Epoch = FIRST_EPOCH,
    sequence: Sequence = FIRST_SEQUENCE,
    codec: Codec = Codec.NONE,
    key_hashes: bool = True,
    hashes: bytes | None = None,
) -> bytearray:
    """Return a batch whose columns are these arrays (binary or string, map, timestamps or int64).

    Buffers are joined as they are; only hashes of keys, and times that differ from record to
    record, are made one by one. A null time is one that was not given. `hashes` are those of the
    keys, 0 where there is none, if the caller has them already.
    """
    count = len(values)
    if not count:
        raise InvalidBatch("a batch has at least one record")
    for name, array in (("keys", keys), ("headers", headers)):
        if array is not None and len(array) != count:
            raise InvalidBatch(f"{len(array)} {name} were given for {count} records")
    column = _binary_column(values)
    flags = VALUE_NULLS if column.has_nulls else 0
    section = column.pieces
    key_column = b""
    if keys is not None and keys.null_count < count:
        column = _binary_column(keys)
        flags |= KEYS | (KEY_NULLS if column.has_nulls else 0)
        section += column.pieces
        if hashes is not None:
            key_column = hashes
        elif key_hashes:
            key_column = hash_column(keys.cast(pa.binary()).to_pylist(), has_nulls=column.has_nulls)
    if headers is not None and headers.null_count < count:
        column = _header_column(headers)
        flags |= HEADERS | (HEADER_NULLS if column.has_nulls else 0)
        section += column.pieces
    return assembled(
        section,
        flags=flags,
        count=count,
        span=count,
        times=encoded_times(
            count,
            timestamps=_micros(timestamps, none=NO_TIMESTAMP),
            expires_at=_micros(expires_at, none=NEVER),
            deliver_at=_micros(deliver_at, none=AT_ONCE),
        ),
        hashes=key_column,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
        codec=codec,
    )


# --- batch to Arrow ---------------------------------------------------------------------------


def _offsets(batch: Batch) -> pa.Array:
    if batch.is_compacted:
        deltas = pa.Array.from_buffers(
            pa.int32(), batch.count, [None, pa.py_buffer(batch.offset_deltas())]
        )
        return pc.add(deltas.cast(pa.int64()), pa.scalar(batch.base_offset, pa.int64()))
    if hasattr(pa, "arange"):
        return pa.arange(batch.base_offset, batch.next_offset)
    return pa.array(range(batch.base_offset, batch.next_offset), pa.int64())  # an older pyarrow


def _same_time(time: int, count: int) -> pa.Array:
    # Repeating eight bytes is a plain memory fill, several times as fast as pa.repeat.
    return pa.Array.from_buffers(_INSTANT, count, [None, pa.py_buffer(_INT64.pack(time) * count)])


def _times(batch: Batch, start: int, constant: int, *, none: int) -> pa.Array:
    count = batch.count
    if not start:
        return _nulls(_NO_TIMES, count) if constant == none else _same_time(constant, count)
    column = pa.py_buffer(batch.buffer[start : start + 8 * count])
    times = pa.Array.from_buffers(pa.int64(), count, [None, column])
    given = pc.not_equal(times, pa.scalar(none, pa.int64()))
    if not pc.all(given).as_py():
        times = pc.if_else(given, times, pa.scalar(None, pa.int64()))
    return times.view(_INSTANT)


def _binary(column: BinaryColumn, kind: pa.DataType) -> pa.Array:
    marks = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [marks, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, column.count, buffers)


def _headers(column: HeaderColumn) -> pa.Array:
    children = [_binary(column.names, pa.string()), _binary(column.contents, pa.binary())]
    entries = pa.Array.from_buffers(_ENTRIES, column.names.count, [None], children=children)
    offsets = pa.py_buffer(column.offsets)
    return pa.Array.from_buffers(_HEADERS, column.count, [None, offsets], children=[entries])


def _no_headers(count: int) -> pa.Array:
    if count <= _READY:
        return _EMPTY_MAPS.slice(0, count)
    return _empty_maps(count)


def _empty_maps(count: int) -> pa.Array:
    offsets = pa.py_buffer(bytes(4 * (count + 1)))
    return pa.Array.from_buffers(_HEADERS, count, [None, offsets], children=[_NO_ENTRIES])


def _nulls(ready: pa.Array, count: int) -> pa.Array:
    return ready.slice(0, count) if count <= _READY else pa.nulls(count, ready.type)


_READY: Final = 16_384
"""Columns of nothing are kept ready up to this length, and cut to size; longer ones are made."""

_NO_KEYS: Final = pa.nulls(_READY, _BINARY)
_NO_TIMES: Final = pa.nulls(_READY, _INSTANT)
_NO_ENTRIES: Final = pa.array([], _ENTRIES)
_EMPTY_MAPS: Final = _empty_maps(_READY)


# --- Arrow to batch ---------------------------------------------------------------------------


def _binary_column(array: pa.Array) -> Column:
    array = _whole(array)
    if array.type not in (pa.binary(), pa.string()):
        array = array.cast(pa.binary())
    bounds, first, last = _bounds(array)
    data = array.buffers()[2]
    contents: Buffer = b"" if data is None else memoryview(data)[first:last]
    pieces = [*piece(bounds), *piece(contents)]
    if not array.null_count:
        return Column(pieces, has_nulls=False)
    return Column([*piece(_validity(array)), *pieces], has_nulls=True)


def _bounds(array: pa.Array) -> tuple[Buffer, int, int]:
    """Return an array's offsets counted from 0, and where its data begins and ends."""
    count = len(array)
    buffer = array.buffers()[1]
    if buffer is None or not count:
        return bytes(4 * (count + 1)), 0, 0
    offsets = pa.Array.from_buffers(pa.int32(), array.offset + count + 1, [None, buffer])
    first, last = offsets[array.offset].as_py(), offsets[array.offset + count].as_py()
    if not first:
        return memoryview(buffer)[4 * array.offset : 4 * (array.offset + count + 1)], first, last
    rebased = pc.subtract(offsets[array.offset :], pa.scalar(first, pa.int32()))
    return memoryview(rebased.buffers()[1])[: 4 * (count + 1)], first, last


def _validity(array: pa.Array) -> bytes:
    # A slice's marks may start in the middle of a byte; shifting one long integer moves them all.
    count = len(array)
    marks: int = int.from_bytes(memoryview(array.buffers()[0]), "little") >> array.offset
    return (marks & ((1 << count) - 1)).to_bytes(bitmap_bytes(count), "little")


def _header_column(array: pa.Array) -> Column:
    array = _whole(array)
    if array.null_count:
        # A null map may hide entries behind its null; ours has no nulls, so look at each.
        return header_column(array.to_pylist())
    if array.type != _HEADERS:
        array = array.cast(_HEADERS)
    bounds, first, last = _bounds(array)
    names = _binary_column(array.keys.slice(first, last - first))
    contents = _binary_column(array.items.slice(first, last - first))
    return Column([*piece(bounds), *names.pieces, *contents.pieces], contents.has_nulls)


def _micros(times: int | pa.Array | None, *, none: int) -> int | list[int] | None:
    if times is None or isinstance(times, int):
        return times
    array = _whole(times)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz))
    numbers: list[int] = array.cast(pa.int64()).fill_null(none).to_pylist()
    return numbers


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
