"""Packing and unpacking the section, with a limit on what unpacking may allocate.

Unpacking never trusts a compressed stream about its size. The header declares the length, the
caller has checked it against a limit, and not a byte more than that is produced; a stream that
holds less, or more, is refused. LZ4 cannot expand more than 255 times, so a declared length beyond
that is refused before anything is allocated.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import lz4.block

from angarium.batch.layout import Codec
from angarium.errors import InvalidBatch

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from angarium.ids import Buffer

LZ4_RATIO_MAX: Final = 255
"""One byte of an LZ4 block stands for at most 255 bytes of content."""

ZSTD_WINDOW_LOG_MIN: Final = 23
"""Windows up to 8 MiB are always accepted, as RFC 8878 (3.1.1.1.2) recommends; a larger one only
when the section itself is larger. It bounds what the decompressor allocates for itself."""


def packed(codec: Codec, section: Buffer) -> bytes:
    """Return `section` compressed."""
    match codec:
        case Codec.LZ4:
            return bytes(lz4.block.compress(section, store_size=False))
        case Codec.ZSTD:
            return zstd.compress(section)
        case _:
            return bytes(section)


def unpacked(codec: int, stored: Buffer, *, section_bytes: int) -> Buffer:
    """Return the section that `stored` holds; `InvalidBatch` unless it has `section_bytes`."""
    match codec:
        case Codec.NONE:
            section = stored
        case Codec.LZ4:
            section = _unpacked_lz4(stored, section_bytes)
        case Codec.ZSTD:
            section = _unpacked_zstd(stored, section_bytes)
        case _:
            raise InvalidBatch(f"codec {codec} is unknown")
    if len(section) != section_bytes:
        raise InvalidBatch(
            f"the section unpacks to {len(section)} bytes where {section_bytes} are declared"
        )
    return section


def _unpacked_lz4(stored: Buffer, section_bytes: int) -> bytes:
    if section_bytes > LZ4_RATIO_MAX * len(stored):
        raise InvalidBatch(
            f"{len(stored)} bytes of LZ4 cannot hold the {section_bytes} that are declared"
        )
    try:
        return bytes(lz4.block.decompress(stored, uncompressed_size=section_bytes))
    except (lz4.block.LZ4BlockError, ValueError, OverflowError) as error:
        raise InvalidBatch("the section is not a valid LZ4 block") from error


def _unpacked_zstd(stored: Buffer, section_bytes: int) -> bytes:
    window_log = max(ZSTD_WINDOW_LOG_MIN, (section_bytes - 1).bit_length())
    decompressor = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: window_log}
    )
    try:
        # One byte more than declared, so that a stream with more content shows itself.
        section = decompressor.decompress(stored, max_length=section_bytes + 1)
    except zstd.ZstdError as error:
        raise InvalidBatch("the section is not a valid Zstandard frame") from error
    if not decompressor.eof or decompressor.unused_data:
        raise InvalidBatch("the section is not exactly one Zstandard frame")
    return section
