"""The sparse index of one segment: at intervals, which offset and time begin at a position.

A point also has the checksum of everything before it. The bytes between two points are therefore
verified by one run over them, whatever the size of the batches inside: that is what keeps a
verified read near the speed of a bare one.

That checksum has a blind spot. A stamp is followed by its own CRC-32C, and a CRC over both comes
out the same for every valid stamp, so it cannot tell a frame from another one that was stamped
differently. A second checksum, over the stamps' checksums one after the other, can. It costs a
walk from frame to frame and is compared where frames come from outside: in imports and repairs.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from angarium.ids import Buffer

_COUNT: Final = struct.Struct("<I4x")
_POINT_BYTES: Final = 8 + 8 + 8 + 4 + 4


class Point(NamedTuple):
    """A position in a segment file at which a frame begins, or its end."""

    position: int
    crc: int
    """The checksum of the file's bytes before `position`."""


class SparseIndex:
    """Points in the order of the file. The first one is the file's beginning."""

    __slots__ = ("_crcs", "_offsets", "_positions", "_stamps", "_times")

    def __init__(self) -> None:
        self._offsets = array("q")
        self._times = array("q")
        self._positions = array("q")
        self._crcs = array("I")
        self._stamps = array("I")

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, *, offset: Offset, time: Micros, position: int, crc: int, stamps: int) -> None:
        """Add a point behind all others."""
        self._offsets.append(offset)
        self._times.append(time)
        self._positions.append(position)
        self._crcs.append(crc)
        self._stamps.append(stamps)

    def __getitem__(self, row: int) -> Point:
        return Point(self._positions[row], self._crcs[row])

    def offset(self, row: int) -> Offset:
        """Return the offset that begins at a point."""
        return Offset(self._offsets[row])

    def stamps(self, row: int) -> int:
        """Return the checksum of the stamps' checksums before a point."""
        return self._stamps[row]

    def last_position(self) -> int:
        """Return where the last point lies; a segment without any wants one at once."""
        return self._positions[-1] if self._positions else -(1 << 62)

    def row_of_offset(self, offset: Offset) -> int:
        """Return the last point at or before `offset`."""
        return bisect_right(self._offsets, offset) - 1

    def window(self, row: int, bytes_max: int, written: Point) -> tuple[int, int, int, int, int]:
        """Return what to read from a point on: as far as `bytes_max` reaches, or one stretch.

        That is: position and checksum of both ends, and the row of the point at the far end.
        Points behind `written` belong to batches that still wait in memory.
        """
        positions = self._positions
        start = positions[row]
        limit = start + bytes_max
        if limit < written.position:
            last = bisect_right(positions, limit, row + 1) - 1
            last = max(last, row + 1)
            if last < len(positions) and positions[last] <= written.position:
                return start, self._crcs[row], positions[last], self._crcs[last], last
        return start, self._crcs[row], *written, len(positions)

    def end_of_stretch(self, row: int, written: Point) -> Point:
        """Return the point behind a point, or where the written part ends if that comes first."""
        position, crc = self.window(row, 1, written)[2:4]
        return Point(position, crc)

    def row_before_time(self, time: Micros) -> int:
        """Return the last point before which nothing can be as late as `time`."""
        # A gap repeats the time before it, so of equal times the first one counts.
        return max(bisect_left(self._times, time) - 1, 0)

    def row_at_or_before(self, position: int) -> int:
        """Return the last point that is not behind `position`."""
        return bisect_right(self._positions, position) - 1

    def encode(self) -> bytes:
        """Return the index as it is stored: a count, then column after column."""
        columns = (column.tobytes() for column in self._columns)
        return b"".join([_COUNT.pack(len(self)), *columns])

    @classmethod
    def decode(cls, data: Buffer) -> SparseIndex | None:
        """Return the index stored as `data`, or None if the lengths do not agree."""
        if len(data) < _COUNT.size:
            return None
        (count,) = _COUNT.unpack_from(data)
        if len(data) != _COUNT.size + count * _POINT_BYTES:
            return None
        index = cls()
        start = _COUNT.size
        for column in index._columns:
            end = start + count * column.itemsize
            column.frombytes(data[start:end])
            start = end
        return index

    @property
    def _columns(self) -> tuple[array[int], ...]:
        return (self._offsets, self._times, self._positions, self._crcs, self._stamps)
