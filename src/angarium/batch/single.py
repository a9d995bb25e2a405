"""A batch of one record, quickly: what a door makes of every single publish.

The bytes are those of `encode`. Laying out columns costs the same whether they have one slot or a
thousand; with one slot nearly all of a batch is known beforehand, and two calls to `struct` write
the rest.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.batch.columns import check_times
from angarium.batch.encoding import check_producer, encode
from angarium.batch.hashing import key_hash
from angarium.batch.layout import (
    AT_ONCE,
    FIRST_EPOCH,
    FIRST_SEQUENCE,
    FRAME,
    HEADER,
    HEADER_BYTES,
    INT32_MAX,
    KEY_HASHES,
    KEYS,
    MAGIC,
    NEVER,
    NO_TIMESTAMP,
    VERSION,
    Codec,
    Format,
)
from angarium.errors import InvalidBatch
from angarium.ids import NO_PRODUCER, Epoch, ProducerId, Sequence

if TYPE_CHECKING:
    from angarium.ids import Buffer

_FORMAT: Final = int(Format.COLUMNAR)
_CODEC: Final = int(Codec.NONE)
_KEYED: Final = KEYS | KEY_HASHES

_CHECKED: Final = struct.Struct("<" + HEADER.format.removeprefix(FRAME.format))
"""The header after the frame: what the client's checksum covers, before the columns."""
_SLOT: Final = struct.Struct("<ii")
"""A column's offsets when it has one slot: where the slot begins and ends."""
_HASH: Final = struct.Struct("<I4x")
"""A column of one key hash, padded."""

_PADDING: Final = tuple(bytes(length) for length in range(8))


def encode_one(
    value: Buffer | None,
    *,
    key: Buffer | None = None,
    timestamp: int = NO_TIMESTAMP,
    expires_at: int = NEVER,
    deliver_at: int = AT_ONCE,
    producer_id: ProducerId = NO_PRODUCER,
    epoch: Epoch = FIRST_EPOCH,
    sequence: Sequence = FIRST_SEQUENCE,
) -> bytearray:
    """Return a batch of one record without headers, the same one as from `encode`."""
    if value is None:
        return encode(
            (None,),
            keys=(key,),
            timestamps=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
        )
    if timestamp or deliver_at or expires_at != NEVER:
        check_times("timestamps", timestamp, timestamp)
        check_times("expiry times", expires_at, expires_at, low_min=1, never=True)
        check_times("delivery times", deliver_at, deliver_at)
    if producer_id or sequence or epoch:
        check_producer(producer_id, epoch, sequence, 1)
    size = len(value)
    section: tuple[Buffer, ...] = (_SLOT.pack(0, size), value, _PADDING[-size & 7])
    section_bytes = 8 + size + (-size & 7)
    flags, hashes = 0, b""
    if key is not None:
        flags, hashes, size = _KEYED, _HASH.pack(key_hash(key)), len(key)
        section += (_SLOT.pack(0, size), key, _PADDING[-size & 7])
        section_bytes += 8 + size + (-size & 7)
    length = HEADER_BYTES + len(hashes) + section_bytes
    if length > INT32_MAX:
        raise InvalidBatch(f"a batch cannot have {length} bytes")
    header = _CHECKED.pack(
        *(length, VERSION, _FORMAT, _CODEC, 0, flags, 1, 1, producer_id, sequence, epoch),
        *(section_bytes, section_bytes, 0, timestamp, timestamp, expires_at, expires_at),
        *(deliver_at, deliver_at),
    )
    checked = b"".join((header, hashes, *section))
    if len(checked) != length - FRAME.size:
        raise InvalidBatch("the key or the value is a view of something other than bytes")
    return bytearray().join((FRAME.pack(MAGIC, crc32c_of_bytes(checked), 0, 0, 0, 0), checked))
