"""Numbering a batch in place, and cutting a run of batches apart.

The leader writes 28 bytes: base offset, term, append time, and a checksum over them together with
the client's checksum. The body is neither copied nor hashed again, however long it is; and because
the client's checksum is under the stamp's, and the stamp's covers the stamp, a flipped byte
anywhere in a stamped batch shows.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from angarium.batch.checksum import crc32c, crc32c_of_bytes
from angarium.batch.layout import (
    CHECKED_START,
    HEADER_BYTES,
    INT64_MAX,
    LENGTH,
    LENGTH_START,
    MAGIC,
    STAMP,
    STAMP_CRC,
    STAMP_START,
)
from angarium.errors import InvalidBatch

if TYPE_CHECKING:
    from angarium.batch.layout import Header
    from angarium.ids import Buffer, Micros, Offset, Term

_UNSTAMPED = bytes(CHECKED_START - STAMP_START)

_BEGINNING = Struct("<4s32xI")
assert _BEGINNING.size == LENGTH_START + LENGTH.size
_beginning = _BEGINNING.unpack_from
"""A batch's magic and its length."""


def stamp(
    buffer: bytearray | memoryview, *, base_offset: Offset, term: Term, append_time: Micros
) -> None:
    """Number the batch in `buffer`, writing over an earlier stamp if there is one."""
    assert 0 <= base_offset <= INT64_MAX
    # Both above 0, so that a stamp is never all zeros: those mean "not stamped".
    assert 0 < term <= INT64_MAX
    assert 0 < append_time <= INT64_MAX
    STAMP.pack_into(buffer, STAMP_START, base_offset, term, append_time)
    # A checksum of its own for the stamp, so that the body need not be hashed again for 28 bytes.
    LENGTH.pack_into(buffer, STAMP_CRC, crc32c_of_bytes(bytes(buffer[:STAMP_CRC])))


def clear_stamp(buffer: bytearray | memoryview) -> None:
    """Make the batch in `buffer` unstamped again, as its producer made it."""
    buffer[STAMP_START:CHECKED_START] = _UNSTAMPED


def verify_checksums(buffer: Buffer, header: Header) -> None:
    """Raise `InvalidBatch` unless the client's checksum holds, and the stamp's if there is one."""
    view = memoryview(buffer)
    if view[STAMP_START:CHECKED_START] != _UNSTAMPED:
        if crc32c_of_bytes(bytes(view[:STAMP_CRC])) != header.stamp_crc:
            raise InvalidBatch("the stamp does not match its checksum")
        if header.base_offset < 0 or header.term <= 0 or header.append_time <= 0:
            raise InvalidBatch("the stamp holds an impossible offset, term or time")
        if header.base_offset > INT64_MAX - header.span:
            raise InvalidBatch("the stamp numbers records beyond the last offset there is")
    if crc32c(view[CHECKED_START : header.length]) != header.crc:
        raise InvalidBatch("the contents do not match their checksum")


def split(buffer: Buffer) -> list[memoryview]:
    """Cut the batches lying one after the other in `buffer` apart, without copying.

    Only magic and length of each are looked at; `InvalidBatch` if they do not fill `buffer`.
    """
    view = memoryview(buffer)
    batches = []
    start, end = 0, len(view)
    while start < end:
        left = end - start
        if left < HEADER_BYTES:
            batch_length(view, start)  # says what is wrong
        magic, length = _beginning(view, start)
        if magic != MAGIC or not HEADER_BYTES <= length <= left or length & 7:
            length = batch_length(view, start)
            raise InvalidBatch(f"a batch of {length} bytes is declared where {left} bytes are left")
        batches.append(view[start : start + length])
        start += length
    return batches


def batch_length(buffer: Buffer, start: int = 0) -> int:
    """Return the length declared by the batch at `start`; its header must be there whole.

    It is at least a header and a multiple of 8; whether that many bytes are there is not checked.
    """
    if len(buffer) - start < HEADER_BYTES:
        raise InvalidBatch(
            f"{len(buffer) - start} bytes are less than a batch's header of {HEADER_BYTES}"
        )
    if buffer[start : start + 4] != MAGIC:
        raise InvalidBatch("these bytes do not start like a batch")
    (length,) = LENGTH.unpack_from(buffer, start + LENGTH_START)
    if length < HEADER_BYTES or length % 8:
        raise InvalidBatch(f"no batch has a length of {length} bytes")
    return int(length)
