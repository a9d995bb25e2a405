"""The plain batch, which most batches are, checked in one go.

Plain means: values alone, none of them null, uncompressed, one timestamp for all, no expiry, no
delay, no stamp. For such a batch the checks of the door (`angarium.batch.validation`) come down to
a few comparisons. Whatever is not plain, or not sound, is left to the door, which says what is
wrong with it; so this only ever saves time.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from angarium.batch.batch_limits import DEFAULT_LIMITS, BatchLimits
from angarium.batch.checksum import crc32c
from angarium.batch.lanes import never_decreases
from angarium.batch.layout import (
    CHECKED_START,
    HEADER_BYTES,
    INT32,
    INT64_MAX,
    MAGIC,
    NEVER,
    TIME_MAX,
    VERSION,
    Codec,
    Format,
)

if TYPE_CHECKING:
    from angarium.ids import Buffer

_HEADER: Final = struct.Struct("<4sI28sIIIIIqqIIIIqqqqqq")
"""The header again, with the stamp as one field, and version, format and codec as another."""
assert _HEADER.size == HEADER_BYTES

_UNSTAMPED: Final = bytes(28)
_KIND: Final = VERSION | Format.COLUMNAR << 8 | Codec.NONE << 16


def is_plain_and_sound(buffer: Buffer, *, limits: BatchLimits = DEFAULT_LIMITS) -> bool:
    """Tell whether `buffer` is one plain batch that the door would let in; False if in doubt."""
    size = len(buffer)
    if not HEADER_BYTES + 8 <= size <= limits.bytes_max:
        return False
    (
        magic,
        crc,
        stamp,
        length,
        kind,
        flags,
        count,
        span,
        producer,
        sequence,
        _epoch,
        section,
        packed,
        reserved,
        *times,
    ) = _HEADER.unpack_from(buffer)
    if (magic, stamp, length, kind, flags, reserved) != (MAGIC, _UNSTAMPED, size, _KIND, 0, 0):
        return False
    if not (
        0 < count == span <= limits.records_max
        and producer >= 0
        and 0 <= sequence <= INT64_MAX - span
        and section == packed == size - HEADER_BYTES
        and section <= limits.section_bytes_max
        and 0 <= times[0] <= TIME_MAX
        and times == [times[0], times[0], NEVER, NEVER, 0, 0]
    ):
        return False
    view = memoryview(buffer)
    checksum: int = crc
    return _is_filled(view, count) and crc32c(view[CHECKED_START:]) == checksum


def _is_filled(view: memoryview, count: int) -> bool:
    """Tell whether offsets of `count` values, then the values, fill what follows the header."""
    values = HEADER_BYTES + (4 * count + 11 & -8)  # each begins at a multiple of 8
    if values > len(view):
        return False
    (first,) = INT32.unpack_from(view, HEADER_BYTES)
    (last,) = INT32.unpack_from(view, HEADER_BYTES + 4 * count)
    if first or last < 0 or values + (last + 7 & -8) != len(view):
        return False
    offsets = view[HEADER_BYTES : HEADER_BYTES + 4 * count + 4]
    return count == 1 or never_decreases(offsets, count=count + 1)
