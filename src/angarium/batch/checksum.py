"""CRC-32C over any buffer, at memory speed.

The C implementation behind `google_crc32c` only takes `bytes`. Other buffers are copied for it
piece by piece: a piece stays in the processor's cache, so the copy is nearly free, and the extra
memory is bounded by `PIECE_BYTES` however long the buffer is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Buffer

PIECE_BYTES: Final = 256 * 1024

extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)
"""Return the checksum of what had the checksum given, followed by more `bytes`."""

crc32c_of_bytes = cast("Callable[[bytes], int]", google_crc32c.value)
"""`crc32c` for what is known to be `bytes`, without a detour."""


def crc32c(buffer: Buffer) -> int:
    """Return the CRC-32C (Castagnoli) of `buffer`, as an unsigned 32-bit number."""
    if isinstance(buffer, bytes):
        return crc32c_of_bytes(buffer)
    if len(buffer) <= PIECE_BYTES:
        return crc32c_of_bytes(bytes(buffer))
    view = memoryview(buffer)
    crc = 0
    for start in range(0, len(view), PIECE_BYTES):
        crc = extend(crc, bytes(view[start : start + PIECE_BYTES]))
    return crc
