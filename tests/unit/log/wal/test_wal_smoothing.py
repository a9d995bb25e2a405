"""Zeros go ahead of small sync rounds, so that most syncs write over blocks that are known."""

from __future__ import annotations

import pytest

from angarium.errors import InvalidArgument
from angarium.ids import Incarnation, Index, RaftGroupId, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.wal import Wal, WalConfig
from angarium.log.wal.config import SMOOTH_BYTES_MAX
from angarium.log.wal.files import SMOOTHED_ROUND_BYTES_MAX, WalFile
from angarium.raft.messages import Entry

GROUP = RaftGroupId(1)


def a_file(*, length: int) -> WalFile:
    file = MemoryDisk().create("one")
    return WalFile(sequence=1, file=file, length=length, end=0, incarnation=1)


def zeros_after(file: WalFile, start: int, size: int, *, ahead_max: int = 4_096) -> int:
    return sum(map(len, file.smoothing(start, size, ahead_max=ahead_max)))


def test_many_small_groups_share_one_stretch_of_zeros() -> None:
    file = a_file(length=1 << 20)
    written = [zeros_after(file, start, 512) for start in range(0, 9 * 512, 512)]
    assert written == [4_096, 0, 0, 0, 0, 0, 0, 0, 0]
    assert zeros_after(file, 9 * 512, 512) == 4_096


def test_zeros_end_where_the_file_ends() -> None:
    file = a_file(length=6_000)
    assert zeros_after(file, 0, 5_000) == 1_000
    assert zeros_after(file, 5_000, 1_000) == 0


def test_a_large_group_is_not_written_twice() -> None:
    file = a_file(length=1 << 20)
    assert zeros_after(file, 0, SMOOTHED_ROUND_BYTES_MAX + 1) == 0
    assert zeros_after(file, SMOOTHED_ROUND_BYTES_MAX + 1, 512) == 4_096


@pytest.mark.parametrize("smooth_bytes", [0, 4_096, SMOOTH_BYTES_MAX])
def test_a_log_reads_the_same_however_many_zeros_went_ahead(smooth_bytes: int) -> None:
    disk = MemoryDisk()
    config = WalConfig(file_bytes=16_384, reserve_bytes=8_192, smooth_bytes=smooth_bytes)
    wal = Wal.open(disk, incarnation=Incarnation(1), config=config)
    wal.add_group(GROUP)
    entries = [Entry(Term(1), Index(index), bytes([index]) * 700) for index in range(1, 100)]
    for entry in entries:
        wal.append(GROUP, [entry])
        wal.sync()
    again = Wal.open(disk, incarnation=Incarnation(1), config=config)
    assert again.recovered.groups[GROUP].damage is None
    assert list(again.log(GROUP).entries(Index(1), Index(100), 1 << 30)) == entries


def test_more_zeros_than_a_sync_can_bear_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="smooth_bytes"):
        WalConfig(smooth_bytes=SMOOTH_BYTES_MAX + 1)
