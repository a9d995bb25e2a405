"""The mark of a data directory's feature level: there or not, and never half."""

from __future__ import annotations

import pytest

from angarium.errors import CorruptData
from angarium.log import level_mark
from angarium.log.disk import replace_file
from angarium.log.memory_disk import MemoryDisk


def test_a_directory_without_a_mark_is_of_the_first_level() -> None:
    assert level_mark.load(MemoryDisk()) == 1


def test_the_last_mark_counts() -> None:
    disk = MemoryDisk()
    for level in (2, 31):
        level_mark.save(disk, level)
        assert level_mark.load(disk) == level


def test_every_flipped_bit_is_noticed() -> None:
    disk = MemoryDisk()
    level_mark.save(disk, 2)
    file = disk.open(level_mark.LEVEL_NAME)
    written = file.pread(file.size(), 0)
    for place in range(len(written)):
        for bit in range(8):
            damaged = bytearray(written)
            damaged[place] ^= 1 << bit
            replace_file(disk, level_mark.LEVEL_NAME, damaged)
            with pytest.raises(CorruptData, match="remove it"):
                level_mark.load(disk)


@pytest.mark.parametrize("content", [b"", b"\n", b"angarium level ", b"angarium level 2\n", b"2"])
def test_a_torn_mark_is_noticed(content: bytes) -> None:
    disk = MemoryDisk()
    replace_file(disk, level_mark.LEVEL_NAME, content)
    with pytest.raises(CorruptData):
        level_mark.load(disk)
