"""What a segment file is made of: stamped batches one after the other, and declared gaps.

A *gap* stands for offsets that were reserved and never filled. It looks like the first 56 bytes of
a batch under another magic, so one walk and one check serve both, and the offsets in a file are
dense: an offset that neither a batch nor a gap covers has been lost, and that is noticed.

The two checksums of a frame (the stamp's and the client's) together cover every byte of it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c_of_bytes
from angarium.batch.layout import CHECKED_START, HEADER_BYTES, MAGIC, STAMP_CRC, VERSION
from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from angarium.ids import Buffer

GAP_MAGIC: Final = b"ANGG"
GAP_BYTES: Final = 56
GAP_SPAN_MAX: Final = 2**32 - 1
"""Offsets one gap frame can cover; a wider gap is written as several."""

_PREFIX: Final = struct.Struct("<4sIqqqIIB7xII")
"""Magic, client's checksum, base offset, term, append time, stamp's checksum, length, version,
count, span: where `batch.layout.HEADER` has them."""
assert _PREFIX.size == GAP_BYTES

_WALK: Final = struct.Struct("<8xq20xI12xI")
"""The fields a walk along verified bytes needs: base offset, length, span."""
assert _WALK.size == GAP_BYTES

_STAMPED: Final = struct.Struct("<4s4xq8xq4xI8xII56xq8xq")
assert _STAMPED.size == HEADER_BYTES

_LATEST: Final = struct.Struct("<q8xq")
_LATEST_START: Final = 112
"""Where a batch's header has its latest `expires_at` and its latest `deliver_at`."""

walk = _WALK.unpack_from
"""Return (base offset, length, span) of the frame that starts at a position in a buffer.

A gap is told by its length: no batch is so short."""


stamped = _STAMPED.unpack_from
"""Return (magic, base offset, append time, length, count, span, latest `expires_at`, latest
`deliver_at`) of the batch that starts at a position in a buffer: all that an append needs."""


class Frame(NamedTuple):
    """The facts about one batch or gap that the log needs."""

    base_offset: Offset
    next_offset: Offset
    append_time: Micros
    """Zero for a gap, which happened at no time."""
    length: int
    records: int
    crc: int
    """The client's checksum."""
    stamp_crc: int
    """The stamp's checksum; it covers the client's, so it stands for the whole frame."""
    is_gap: bool


def frame_at(buffer: Buffer, position: int) -> Frame | None:
    """Return what the frame at `position` says of itself, or None if there is none.

    Only the shape is looked at; `is_intact` tells whether the bytes are the ones written.
    """
    if len(buffer) - position < GAP_BYTES:
        return None
    magic, crc, base, _, time, stamp_crc, length, _, count, span = _PREFIX.unpack_from(
        buffer, position
    )
    if magic == MAGIC:
        is_gap = False
        if length < HEADER_BYTES or time <= 0:  # without a time it is not stamped
            return None
    elif magic == GAP_MAGIC and length == GAP_BYTES:
        is_gap = True
    else:
        return None
    if base < 0 or span < 1:
        return None
    return Frame(base, base + span, time, length, count, crc, stamp_crc, is_gap)


def is_intact(chunk: bytes, position: int, frame: Frame) -> bool:
    """Tell whether all bytes of `frame`, which starts at `position`, are there and unchanged."""
    end = position + frame.length
    return (
        end <= len(chunk)
        and crc32c_of_bytes(chunk[position : position + STAMP_CRC]) == frame.stamp_crc
        and crc32c_of_bytes(chunk[position + CHECKED_START : end]) == frame.crc
    )


def latest_times(buffer: Buffer, position: int) -> tuple[Micros, Micros]:
    """Return the latest `expires_at` and the latest `deliver_at` of the batch at `position`."""
    expires_at, deliver_at = _LATEST.unpack_from(buffer, position + _LATEST_START)
    return expires_at, deliver_at


def gap_frames(start: Offset, end: Offset) -> list[bytes]:
    """Return frames that declare `[start, end)` as never filled."""
    frames = []
    while start < end:
        span = min(end - start, GAP_SPAN_MAX)
        frames.append(_gap(start, span))
        start = Offset(start + span)
    return frames


def _gap(base: Offset, span: int) -> bytes:
    frame = bytearray(_PREFIX.pack(GAP_MAGIC, 0, base, 0, 0, 0, GAP_BYTES, VERSION, 0, span))
    crc = crc32c_of_bytes(bytes(frame[CHECKED_START:]))
    frame[4:8] = crc.to_bytes(4, "little")
    stamp_crc = crc32c_of_bytes(bytes(frame[:STAMP_CRC]))
    frame[STAMP_CRC:CHECKED_START] = stamp_crc.to_bytes(4, "little")
    return bytes(frame)
