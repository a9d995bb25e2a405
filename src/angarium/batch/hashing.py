"""The hash of a key: 32 bits that never change, in any version or language.

It is the CRC-32 of zlib, PNG and Ethernet (polynomial 0xEDB88320, reflected), with one twist: 0
is kept for "no key", and a key whose checksum happens to be 0 (the empty one, for example) has the
hash 1. So a broker can tell keyed records from others by this column alone, without opening a
compressed section.

Why a CRC: it is in the standard library of every language and costs 50 ns per key here. It is no
defence against somebody who chooses keys to collide; whoever decides about records by key compares
the keys themselves after the hashes.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import Buffer

NO_KEY: Final = 0
"""The hash of a record without a key."""


def key_hash(key: Buffer | None) -> int:
    """Return the stable 32-bit hash of `key`: 0 for no key, never 0 for a key."""
    return NO_KEY if key is None else zlib.crc32(key) or 1


def key_hash_column(keys: Iterable[Buffer], *, count: int) -> bytes:
    """Return the hashes of `keys`, none of them absent, as a column of unsigned 32-bit numbers."""
    column = struct.pack(f"<{count}I", *map(zlib.crc32, keys))
    if bytes(4) in column:  # perhaps a hash of 0, perhaps two neighbours' zero bytes
        hashes = memoryview(column).cast("I").tolist()
        column = struct.pack(f"<{count}I", *(crc or 1 for crc in hashes))
    return column
