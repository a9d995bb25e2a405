"""What a benchmark's records carry: who sent them, the how-manieth they are, and when.

A record is 16 bytes of stamp and filler. Stamps of many records are made and read by C loops over
whole columns; Python never looks at one, neither while it measures nor while it checks.
"""

from __future__ import annotations

from array import array
from itertools import repeat
from struct import Struct
from typing import TYPE_CHECKING, Final, cast

from angarium.errors import CorruptData

if TYPE_CHECKING:
    from collections.abc import Sequence

STAMP_BYTES: Final = 16

_SEQUENCE_BITS: Final = 40
WORKERS_MAX: Final = (1 << 16) - 1
PROBE: Final = WORKERS_MAX + 1
"""The number under which records are sent that only find out whether the way is open."""


_FILLER: Final = b"Neither snow nor rain nor heat nor night stays these couriers. "


def record_id(worker: int, sequence: int) -> int:
    """Return the id of a worker's record: ids of one worker follow each other."""
    return worker << _SEQUENCE_BITS | sequence


def worker_of(record: int) -> int:
    """Return who sent a record."""
    return record >> _SEQUENCE_BITS


def sequence_of(record: int) -> int:
    """Return a record's number among those of its worker, from 0."""
    return record & ((1 << _SEQUENCE_BITS) - 1)


class Stamps:
    """Makes and reads records of one size."""

    def __init__(self, size: int) -> None:
        assert size >= STAMP_BYTES
        self._size = size
        # Text, not zeros: those are cheaper for some, and dearer for others, than what people send.
        self._filler = (_FILLER * (size // len(_FILLER) + 1))[: size - STAMP_BYTES]
        self._pack = Struct(f"<QQ{len(self._filler)}s").pack

    def records(self, first: int, count: int, sent: int) -> list[bytes]:
        """Return `count` records with ids from `first` on, all sent at `sent` (ns)."""
        return list(
            map(self._pack, range(first, first + count), repeat(sent), repeat(self._filler))
        )

    def columns(self, records: Sequence[bytes | None]) -> tuple[bytes, bytes]:
        """Return the ids and the times of sending of `records`, eight bytes each.

        Raises `CorruptData` for records that no benchmark made.
        """
        size, count = self._size, len(records)
        try:
            joined = b"".join(cast("Sequence[bytes]", records))
        except TypeError:
            raise CorruptData("records without a value came back") from None
        if len(joined) != count * size:
            raise CorruptData(f"records that are not {size} bytes long came back")
        # Byte by byte over all records at once: a strided copy is a C loop, and the only gather
        # the standard library has.
        columns = bytearray(8 * count), bytearray(8 * count)
        for start, column in zip((0, 8), columns, strict=True):
            for byte in range(8):
                column[byte::8] = joined[start + byte :: size]
        return bytes(columns[0]), bytes(columns[1])


def numbers(column: bytes) -> array[int]:
    """Return a column as numbers."""
    found = array("Q")
    found.frombytes(column)
    return found
