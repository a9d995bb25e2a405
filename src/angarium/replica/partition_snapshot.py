"""What a snapshot of a partition holds, as bytes: small state, and a list of its large files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import CorruptData
from angarium.ids import Offset
from angarium.log.segments import Manifest
from angarium.machine import PartitionMachine

if TYPE_CHECKING:
    from angarium.ids import Buffer


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """The state of a partition as of one entry of its log."""

    machine: bytes
    segments: bytes
    """The encoded manifest of the segments as of the snapshot's index."""
    stages: dict[int, list[bytes]]
    """Batches of open transactions, by slot: they are in no segment yet."""
    beside: dict[int, int] | None = None
    """How many parts each open stage has, by slot, where stages are not inside but have to be
    copied as segments are."""

    def encode(self) -> bytes:
        """Return the bytes that a snapshot file holds and that travel to a peer."""
        return msgspec.msgpack.encode(self)


# Made on import: msgspec crashes where two threads are the first to decode a type.
_decode: Final = msgspec.msgpack.Decoder(PartitionSnapshot).decode


def decoded(data: Buffer) -> PartitionSnapshot:
    """Return what `encode` made bytes of; raises `CorruptData`."""
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a partition's snapshot cannot be read: {error}") from error


def manifest_in(data: Buffer) -> Manifest:
    """Return the segments that a partition's snapshot stands on."""
    return Manifest.decode(decoded(data).segments)


def stages_beside(data: Buffer) -> dict[int, int]:
    """Return how many parts each stage has that is to be copied before the snapshot counts."""
    return decoded(data).beside or {}


def check_readable(data: Buffer) -> None:
    """Raise `CorruptData` unless a replica could become what a snapshot says."""
    content = decoded(data)
    Manifest.decode(content.segments)
    PartitionMachine().restore(content.machine)


def empty_partition() -> bytes:
    """Return the state of a partition that has never been written to."""
    no_segments = Manifest(Offset(0), Offset(0)).encode()
    return PartitionSnapshot(PartitionMachine().snapshot(), no_segments, {}).encode()
