"""Making a batch from columns of records."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, cast

from angarium.batch.checksum import crc32c_of_bytes
from angarium.batch.columns import TimeColumn, binary_column, header_column, piece, time_column
from angarium.batch.compression import packed
from angarium.batch.hashing import key_hash, key_hash_column
from angarium.batch.layout import (
    AT_ONCE,
    CHECKED_START,
    DELIVER_AT,
    EXPIRES_AT,
    FIRST_EPOCH,
    FIRST_SEQUENCE,
    FRAME,
    HEADER,
    HEADER_BYTES,
    HEADER_NULLS,
    HEADERS,
    INT32_MAX,
    INT64_MAX,
    KEY_HASHES,
    KEY_NULLS,
    KEYS,
    MAGIC,
    NEVER,
    NO_TIMESTAMP,
    OFFSET_DELTAS,
    TIMESTAMPS,
    UINT32_MAX,
    VALUE_NULLS,
    VERSION,
    Codec,
    Format,
    padded,
)
from angarium.errors import InvalidBatch
from angarium.ids import NO_PRODUCER, Epoch, ProducerId, Sequence

if TYPE_CHECKING:
    from collections.abc import Sequence as SequenceOf

    from angarium.batch.columns import HeadersOf
    from angarium.ids import Buffer


class Times(NamedTuple):
    """The three columns of times."""

    timestamps: TimeColumn
    expires_at: TimeColumn
    deliver_at: TimeColumn


def encode(
    values: SequenceOf[Buffer | None],
    *,
    keys: SequenceOf[Buffer | None] | None = None,
    headers: SequenceOf[HeadersOf | None] | None = None,
    timestamps: int | SequenceOf[int] | None = None,
    expires_at: int | SequenceOf[int] | None = None,
    deliver_at: int | SequenceOf[int] | None = None,
    producer_id: ProducerId = NO_PRODUCER,
    epoch: Epoch = FIRST_EPOCH,
    sequence: Sequence = FIRST_SEQUENCE,
    codec: Codec = Codec.NONE,
    key_hashes: bool = True,
) -> bytearray:
    """Return a batch of the records whose parts lie in the same row of each column.

    A time may be one number for all records, which then costs no column; times are microseconds,
    `NEVER` stands for no expiry, 0 for no timestamp and for delivery at once. `sequence` is the
    first record's. A section that compression would not make smaller stays as it is.
    """
    count = len(values)
    if not count:
        raise InvalidBatch("a batch has at least one record")
    _check_length(keys, count, "keys")
    _check_length(headers, count, "headers")
    times = encoded_times(
        count, timestamps=timestamps, expires_at=expires_at, deliver_at=deliver_at
    )
    column = binary_column(values, name="values")
    flags = VALUE_NULLS if column.has_nulls else 0
    section = column.pieces
    hashes = b""
    if keys is not None and any(key is not None for key in keys):
        column = binary_column(keys, name="keys")
        flags |= KEYS | (KEY_NULLS if column.has_nulls else 0)
        section += column.pieces
        if key_hashes:
            hashes = hash_column(keys, has_nulls=column.has_nulls)
    if headers is not None and any(headers):
        column = header_column(headers)
        flags |= HEADERS | (HEADER_NULLS if column.has_nulls else 0)
        section += column.pieces
    return assembled(
        section,
        flags=flags,
        count=count,
        span=count,
        times=times,
        hashes=hashes,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
        codec=codec,
    )


def encoded_times(
    count: int,
    *,
    timestamps: int | SequenceOf[int] | None,
    expires_at: int | SequenceOf[int] | None,
    deliver_at: int | SequenceOf[int] | None,
) -> Times:
    """Lay the times of `count` records out."""
    return Times(
        time_column(timestamps, count=count, name="timestamps", default=NO_TIMESTAMP),
        time_column(expires_at, count=count, name="expiry times", default=NEVER, low_min=1),
        time_column(deliver_at, count=count, name="delivery times", default=AT_ONCE),
    )


def assembled(
    section: SequenceOf[Buffer],
    *,
    flags: int,
    count: int,
    span: int,
    times: Times,
    hashes: bytes = b"",
    deltas: bytes | None = None,
    producer_id: ProducerId,
    epoch: Epoch,
    sequence: Sequence,
    codec: Codec,
) -> bytearray:
    """Return an unstamped batch from laid-out columns; `flags` speak of the section only."""
    check_producer(producer_id, epoch, sequence, span)
    fixed: list[Buffer] = []
    for flag, column in zip((TIMESTAMPS, EXPIRES_AT, DELIVER_AT), times, strict=True):
        if column.data:
            flags |= flag
            fixed.append(column.data)
    if hashes:
        flags |= KEY_HASHES
        fixed += piece(hashes)
    if deltas is not None:
        flags |= OFFSET_DELTAS
        fixed += piece(deltas)
    section_bytes = sum(map(len, section))
    stored: SequenceOf[Buffer] = section
    stored_bytes = section_bytes
    if codec is not Codec.NONE:
        smaller = packed(codec, b"".join(section))
        if padded(len(smaller)) < section_bytes:
            stored, stored_bytes = piece(smaller), len(smaller)
        else:
            codec = Codec.NONE
    length = HEADER_BYTES + sum(map(len, fixed)) + padded(stored_bytes)
    if length > INT32_MAX or section_bytes > INT32_MAX:
        raise InvalidBatch(f"a batch cannot have {max(length, section_bytes)} bytes")
    header = HEADER.pack(
        *(MAGIC, 0, 0, 0, 0, 0, length, VERSION, Format.COLUMNAR, codec, 0, flags, count, span),
        *(producer_id, sequence, epoch, section_bytes, stored_bytes, 0),
        *(times.timestamps.low, times.timestamps.high),
        *(times.expires_at.low, times.expires_at.high),
        *(times.deliver_at.low, times.deliver_at.high),
    )
    checked = b"".join((header[CHECKED_START:], *fixed, *stored))
    return bytearray().join((FRAME.pack(MAGIC, crc32c_of_bytes(checked), 0, 0, 0, 0), checked))


def _check_length(column: SequenceOf[object] | None, count: int, name: str) -> None:
    if column is not None and len(column) != count:
        raise InvalidBatch(f"{len(column)} {name} were given for {count} records")


def check_producer(producer_id: int, epoch: int, sequence: int, span: int) -> None:
    """Raise `InvalidBatch` unless a batch may bear these numbers."""
    if not (0 <= producer_id <= INT64_MAX and 0 <= epoch <= UINT32_MAX):
        raise InvalidBatch(f"no producer has id {producer_id} and epoch {epoch}")
    if not 0 <= sequence <= INT64_MAX - span:
        raise InvalidBatch(f"no record has sequence {sequence}")


def hash_column(keys: SequenceOf[Buffer | None], *, has_nulls: bool) -> bytes:
    if has_nulls:
        return struct.pack(f"<{len(keys)}I", *map(key_hash, keys))
    return key_hash_column(cast("SequenceOf[Buffer]", keys), count=len(keys))
