"""The delayed records of a sealed segment, in the order of delivery, in a file beside it.

The file is made when the segment is sealed, and made anew from the segment where it is missing,
damaged or belongs to other bytes; so it may always be thrown away. Records lie in blocks, each
under a checksum, and an index says with which time each begins: a question reads one block or two,
whatever the file holds.

    head     magic, base offset, records, length of a block in records, blocks, checksums of the
             segment's bytes and stamps, of the index, of the head
    index    first time of each block, highest distance in each block (i64), checksums (u32)
    blocks   times, then distances from the segment's first offset (i64)
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData
from angarium.log.disk import replacing
from angarium.log.segments.delay_runs import first_after
from angarium.log.segments.names import DELAYS, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.ids import Offset
    from angarium.log.disk import Disk, File
    from angarium.log.segments.delay_runs import DelayRuns
    from angarium.log.segments.segment import Segment

BLOCK_RECORDS: Final = 4_096
"""Delayed records that are read and verified together: 64 KiB."""

_MAGIC: Final = b"ANGDELA1"
_HEAD: Final = struct.Struct("<8sqqIIIIII")
_CRC_START: Final = _HEAD.size - 4
_BLOCK_INDEX_BYTES: Final = 8 + 8 + 4
_RECORD_BYTES: Final = 8 + 8


class DamagedDelays(CorruptData):
    """A file of delays fails its checksum. It can be made anew from its segment."""

    def __init__(self, base: Offset) -> None:
        super().__init__(f"the delays of segment {base} fail their checksum")
        self.base = base


class Block(NamedTuple):
    """Neighbouring delayed records in the order of delivery."""

    times: array[int]
    deltas: array[int]


class DelayFile:
    """One such file, known by its index; blocks are read when they are asked for."""

    __slots__ = ("_base", "_crcs", "_firsts", "_highs", "_read", "count", "name")

    def __init__(
        self,
        name: str,
        base: Offset,
        count: int,
        index: bytes,
        read: Callable[[str, int, int], bytes],
    ) -> None:
        self.name = name
        self.count = count
        self._base = base
        self._read = read
        blocks = len(index) // _BLOCK_INDEX_BYTES
        self._firsts = array("q", index[: 8 * blocks])
        self._highs = array("q", index[8 * blocks : 16 * blocks])
        self._crcs = array("I", index[16 * blocks :])

    def after(self, after: tuple[int, int], *, floor: int) -> Iterator[tuple[int, int]]:
        """Yield (time, offset) of what comes after `after` in that order, from `floor` on."""
        base = self._base
        # Records of the time asked for may begin in the block before the first that starts with it.
        for number in range(max(bisect_left(self._firsts, after[0]) - 1, 0), len(self._firsts)):
            if base + self._highs[number] < floor:
                continue
            times, deltas = self.block(number)
            start = first_after(times, deltas, (after[0], after[1] - base))
            for at in range(start, len(times)):
                offset = base + deltas[at]
                if offset >= floor:
                    yield times[at], offset

    def block(self, number: int) -> Block:
        """Return one block; raises `CorruptData`."""
        blocks = len(self._firsts)
        start = number * BLOCK_RECORDS
        count = min(BLOCK_RECORDS, self.count - start)
        position = _HEAD.size + blocks * _BLOCK_INDEX_BYTES + start * _RECORD_BYTES
        data = self._read(self.name, count * _RECORD_BYTES, position)
        if len(data) != count * _RECORD_BYTES or crc32c_of_bytes(data) != self._crcs[number]:
            raise DamagedDelays(self._base)
        return Block(array("q", data[: 8 * count]), array("q", data[8 * count :]))


def write_delays(
    disk: Disk, folder: str, segment: Segment, runs: DelayRuns, *, suffix: str = DELAYS
) -> None:
    """Put the file of a segment beside it, atomically. Blocks; may run in a thread."""
    with replacing(disk, file_name(folder, segment.base_offset, suffix)) as file:
        _write(file, segment, runs)


def open_delays(
    disk: Disk, folder: str, segment: Segment, read: Callable[[str, int, int], bytes]
) -> DelayFile | None:
    """Return the file of a segment; None if it is missing, damaged, or of other bytes.

    `read` returns bytes of a named file: how many, from where.
    """
    name = file_name(folder, segment.base_offset, DELAYS)
    if not disk.exists(name):
        return None
    head = read(name, _HEAD.size, 0)
    if len(head) != _HEAD.size:
        return None
    magic, base, count, length, blocks, crc, stamps, index_crc, head_crc = _HEAD.unpack(head)
    if magic != _MAGIC or crc32c_of_bytes(head[:_CRC_START]) != head_crc:
        return None
    expected = (segment.base_offset, BLOCK_RECORDS, segment.crc, segment.stamps)
    if (base, length, crc, stamps) != expected:
        return None
    index = read(name, blocks * _BLOCK_INDEX_BYTES, _HEAD.size)
    if len(index) != blocks * _BLOCK_INDEX_BYTES or crc32c_of_bytes(index) != index_crc:
        return None
    return DelayFile(name, base, count, index, read)


def _write(file: File, segment: Segment, runs: DelayRuns) -> None:
    """Write the blocks behind the room for head and index, and these last."""
    firsts, highs, crcs = array("q"), array("q"), array("I")
    records = len(runs)
    blocks = -(-records // BLOCK_RECORDS)
    position = _HEAD.size + blocks * _BLOCK_INDEX_BYTES
    times, deltas = array("q"), array("q")

    def flush(count: int) -> None:
        nonlocal position
        data = times[:count].tobytes() + deltas[:count].tobytes()
        file.pwrite([data], position)
        position += len(data)
        firsts.append(times[0])
        highs.append(max(deltas[:count]))
        crcs.append(crc32c_of_bytes(data))
        del times[:count], deltas[:count]

    for more_times, more_deltas in runs.in_order():
        times.extend(more_times)
        deltas.extend(more_deltas)
        while len(times) >= BLOCK_RECORDS:
            flush(BLOCK_RECORDS)
    if times:
        flush(len(times))
    assert len(firsts) == blocks, "as many records as were counted"
    index = firsts.tobytes() + highs.tobytes() + crcs.tobytes()
    head = _HEAD.pack(
        _MAGIC,
        segment.base_offset,
        records,
        BLOCK_RECORDS,
        blocks,
        segment.crc,
        segment.stamps,
        crc32c_of_bytes(index),
        0,
    )[:_CRC_START]
    file.pwrite([head, crc32c_of_bytes(head).to_bytes(4, "little"), index], 0)
