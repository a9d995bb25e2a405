"""Where every byte of a batch lies. The picture of this page is docs/reference/batch.md.

    0        36                136                                             length
    | frame  | header          | fixed columns        | section               |
    | stamp  | client's: under the checksum of the client                     |

The *frame* (magic, checksum, the leader's stamp) is the same in every version that will ever be.
The *header* says how many records there are and what holds for all of them. *Fixed columns* have
one number per record and are never compressed, so that a broker can look at them in place. The
*section* holds values, keys and headers as Arrow buffers and may be compressed as a whole.
Everything starts at a multiple of 8 bytes from the batch's start, and is little-endian.
"""

from __future__ import annotations

import struct
import sys
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

import msgspec

from angarium.ids import Buffer, Epoch, Micros, Offset, ProducerId, Sequence, Term

if sys.byteorder != "little":  # pragma: no cover - no such machine is supported
    raise ImportError("angarium reads columns in place and so needs a little-endian machine")

MAGIC: Final = b"ANGB"
VERSION: Final = 1

NEVER: Final = Micros(2**63 - 1)
"""`expires_at` of a record that does not expire: later than every clock."""

AT_ONCE: Final = Micros(0)
"""`deliver_at` of a record that is not delayed: earlier than every clock."""

NO_TIMESTAMP: Final = Micros(0)
"""The timestamp of a record to which its producer gave none."""

TIME_MAX: Final = Micros(253_402_300_799_999_999)
"""The last microsecond of the year 9999: calendars of most languages end there."""

FIRST_EPOCH: Final = Epoch(0)
FIRST_SEQUENCE: Final = Sequence(0)

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
UINT32_MAX: Final = 2**32 - 1


class Format(IntEnum):
    """How the bytes after the header are arranged. Other layouts may come; today there is one."""

    COLUMNAR = 1


class Codec(IntEnum):
    """How the section is compressed."""

    NONE = 0
    LZ4 = 1
    """One raw LZ4 block, without a frame around it."""
    ZSTD = 2
    """One Zstandard frame."""


class Flag(IntFlag):
    """Which columns are there."""

    TIMESTAMPS = 1 << 0
    EXPIRES_AT = 1 << 1
    DELIVER_AT = 1 << 2
    KEY_HASHES = 1 << 3
    OFFSET_DELTAS = 1 << 4
    """The batch has been compacted: it holds some of the offsets it spans, perhaps none."""
    VALUE_NULLS = 1 << 8
    KEYS = 1 << 9
    KEY_NULLS = 1 << 10
    HEADERS = 1 << 11
    HEADER_NULLS = 1 << 12


TIMESTAMPS: Final = int(Flag.TIMESTAMPS)
EXPIRES_AT: Final = int(Flag.EXPIRES_AT)
DELIVER_AT: Final = int(Flag.DELIVER_AT)
KEY_HASHES: Final = int(Flag.KEY_HASHES)
OFFSET_DELTAS: Final = int(Flag.OFFSET_DELTAS)
VALUE_NULLS: Final = int(Flag.VALUE_NULLS)
KEYS: Final = int(Flag.KEYS)
KEY_NULLS: Final = int(Flag.KEY_NULLS)
HEADERS: Final = int(Flag.HEADERS)
HEADER_NULLS: Final = int(Flag.HEADER_NULLS)
# Plain integers beside the enumeration: `&` with an IntFlag takes almost a microsecond, with an
# integer almost nothing, and the door asks a dozen such questions per batch.

KNOWN_FLAGS: Final = sum(Flag)

FRAME: Final = struct.Struct("<4sIqqqI")
"""Magic, the client's checksum, and the stamp: base offset, term, append time, its checksum."""

STAMP: Final = struct.Struct("<qqq")
STAMP_START: Final = 8
STAMP_CRC: Final = 32
"""The stamp's own checksum lies here and covers everything before it."""

CHECKED_START: Final = 36
"""From here to the end everything is the client's, under the client's checksum."""

HEADER: Final = struct.Struct("<4sIqqqIIBBBBIIIqqIIIIqqqqqq")
HEADER_BYTES: Final = HEADER.size
assert (FRAME.size, HEADER_BYTES) == (CHECKED_START, 136)

LENGTH: Final = struct.Struct("<I")
LENGTH_START: Final = 36
INT32: Final = struct.Struct("<i")


class Header(msgspec.Struct, frozen=True, gc=False):
    """The first 136 bytes, field by field."""

    magic: bytes
    crc: int
    base_offset: Offset
    term: Term
    append_time: Micros
    stamp_crc: int
    length: int
    version: int
    format: int
    codec: int
    reserved_byte: int
    flags: int
    count: int
    span: int
    producer_id: ProducerId
    sequence: Sequence
    epoch: Epoch
    section_bytes: int
    """The section's length as laid out, before compression."""
    packed_bytes: int
    """The section's length as it is stored, without the padding after it."""
    reserved: int
    timestamp_min: Micros
    timestamp_max: Micros
    expires_at_min: Micros
    expires_at_max: Micros
    deliver_at_min: Micros
    deliver_at_max: Micros


def unpacked_header(buffer: Buffer) -> Header:
    """Return the header at the start of `buffer`, which must be long enough; nothing is checked."""
    return Header(*HEADER.unpack_from(buffer))


class FixedColumns(NamedTuple):
    """Where each fixed column starts, counted from the batch's start; 0 for one not there."""

    timestamps: int
    expires_at: int
    deliver_at: int
    key_hashes: int
    offset_deltas: int
    end: int
    """Where the section starts."""


_FIXED_FLAGS: Final = TIMESTAMPS | EXPIRES_AT | DELIVER_AT | KEY_HASHES | OFFSET_DELTAS
_NO_COLUMNS: Final = FixedColumns(0, 0, 0, 0, 0, HEADER_BYTES)


def padded(length: int) -> int:
    """Return `length` rounded up to a multiple of 8."""
    return (length + 7) & -8


def fixed_columns(flags: int, count: int) -> FixedColumns:
    """Return where the columns of a batch with these `flags` and `count` of records lie."""
    if not flags & _FIXED_FLAGS:
        return _NO_COLUMNS
    wide, narrow = 8 * count, padded(4 * count)
    starts = []
    end = HEADER_BYTES
    for flag, size in (
        (TIMESTAMPS, wide),
        (EXPIRES_AT, wide),
        (DELIVER_AT, wide),
        (KEY_HASHES, narrow),
        (OFFSET_DELTAS, narrow),
    ):
        starts.append(end if flags & flag else 0)
        end += size if flags & flag else 0
    return FixedColumns._make((*starts, end))


def bitmap_bytes(count: int) -> int:
    """Return the length of a validity bitmap for `count` slots, without padding."""
    return (count + 7) >> 3
