"""Batches that lie: header fields set to anything, under checksums made to match.

Without the right checksum a lie would be caught at the first gate, and the gates behind it would
never be tried.
"""

from __future__ import annotations

import struct
from typing import Final

from angarium.batch import crc32c

HEADER_FIELDS: Final = {
    "base_offset": ("<q", 8),
    "term": ("<q", 16),
    "append_time": ("<q", 24),
    "length": ("<I", 36),
    "version": ("<B", 40),
    "format": ("<B", 41),
    "codec": ("<B", 42),
    "reserved_byte": ("<B", 43),
    "flags": ("<I", 44),
    "count": ("<I", 48),
    "span": ("<I", 52),
    "producer_id": ("<q", 56),
    "sequence": ("<q", 64),
    "epoch": ("<I", 72),
    "section_bytes": ("<I", 76),
    "packed_bytes": ("<I", 80),
    "reserved": ("<I", 84),
    "timestamp_min": ("<q", 88),
    "timestamp_max": ("<q", 96),
    "expires_at_min": ("<q", 104),
    "expires_at_max": ("<q", 112),
    "deliver_at_min": ("<q", 120),
    "deliver_at_max": ("<q", 128),
}
"""Every field a forger may set: its struct format and where it lies.

Written down once more on purpose: the layout is checked against it, not taken from it."""


def forged(buffer: bytearray, **fields: int) -> bytearray:
    """Set header `fields` in `buffer`, make the checksums match, and return it."""
    for name, value in fields.items():
        kind, start = HEADER_FIELDS[name]
        struct.pack_into(kind, buffer, start, value)
    return resealed(buffer)


def resealed(buffer: bytearray) -> bytearray:
    """Make the checksums of `buffer` match its bytes again, and return it."""
    if len(buffer) >= 36:
        struct.pack_into("<I", buffer, 4, crc32c(bytes(buffer[36:])))
        if any(buffer[8:32]):
            struct.pack_into("<I", buffer, 32, crc32c(bytes(buffer[:32])))
    return buffer
