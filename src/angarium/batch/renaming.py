"""Giving a batch another producer, under a checksum that says so."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c
from angarium.batch.layout import CHECKED_START, HEADER_BYTES, LENGTH
from angarium.batch.peeking import PRODUCER_START

if TYPE_CHECKING:
    from angarium.ids import Buffer, ProducerId

_CRC_START: Final = 4
_PRODUCER: Final = Struct("<q")


def of_producer(batch: Buffer, producer: ProducerId) -> Buffer:
    """Return the batch as that of `producer`.

    What does not match its checksum comes back as it is: with a new one nobody would find out.
    """
    if len(batch) < HEADER_BYTES:
        return batch
    (crc,) = LENGTH.unpack_from(batch, _CRC_START)
    if crc32c(memoryview(batch)[CHECKED_START:]) != crc:
        return batch
    made = bytearray(batch)
    _PRODUCER.pack_into(made, PRODUCER_START, producer)
    LENGTH.pack_into(made, _CRC_START, crc32c(memoryview(made)[CHECKED_START:]))
    return made
