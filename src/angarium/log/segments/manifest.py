"""The list of segments a snapshot stands on: what a peer must have before it may install it."""

from __future__ import annotations

from typing import Final

import msgspec

from angarium.batch.checksum import crc32c
from angarium.errors import CorruptData
from angarium.ids import Buffer, Offset
from angarium.log.segments.compacted_mark import Stage

MAGIC: Final = b"ANGMAN01"
_CRC_BYTES: Final = 4


class SegmentInfo(msgspec.Struct, frozen=True, array_like=True):
    """One segment, or the first part of it: exactly `bytes` bytes with these checksums."""

    base_offset: Offset
    next_offset: Offset
    bytes: int
    crc32c: int
    stamps_crc32c: int
    """The checksum of the frames' stamp checksums; see `index` for what the other cannot see."""

    @property
    def id(self) -> Offset:
        """The segment's name within its partition: its first offset."""
        return self.base_offset


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """A partition's segments at one moment, one adjoining the other."""

    start_offset: Offset
    """The first offset that may be read; it may lie inside the first segment."""
    end_offset: Offset
    """The next offset to come."""
    segments: tuple[SegmentInfo, ...] = ()
    stage: Stage = Stage()
    """How far they are compacted."""

    @property
    def total_bytes(self) -> int:
        """How much there is to copy."""
        return sum(info.bytes for info in self.segments)

    def encode(self) -> bytes:
        """Return the manifest as bytes, with a checksum."""
        body = msgspec.msgpack.encode(self)
        return MAGIC + crc32c(body).to_bytes(_CRC_BYTES, "little") + body

    @classmethod
    def decode(cls, data: Buffer) -> Manifest:
        """Return the manifest in `data`; `CorruptData` if it is damaged or makes no sense."""
        body = bytes(data[len(MAGIC) + _CRC_BYTES :])
        stored = int.from_bytes(data[len(MAGIC) : len(MAGIC) + _CRC_BYTES], "little")
        if data[: len(MAGIC)] != MAGIC or crc32c(body) != stored:
            raise CorruptData("a manifest of segments fails its checksum")
        try:
            manifest = _decode(body)
        except msgspec.MsgspecError as error:
            raise CorruptData(f"a manifest of segments cannot be read: {error}") from error
        if not manifest._is_sound():
            raise CorruptData("a manifest's segments do not adjoin each other")
        return manifest

    def _is_sound(self) -> bool:
        if not 0 <= self.start_offset <= self.end_offset:
            return False
        expected = self.segments[0].base_offset if self.segments else self.end_offset
        if expected > self.start_offset:
            return False
        for info in self.segments:
            if info.base_offset != expected or info.next_offset <= info.base_offset:
                return False
            if info.bytes <= 0:
                return False
            expected = info.next_offset
        return expected == self.end_offset


# Made on import: msgspec crashes where two threads are the first to decode a type.
_decode: Final = msgspec.msgpack.Decoder(Manifest).decode
