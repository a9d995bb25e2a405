"""A data directory has one identity, for good; damage to it is never papered over."""

from __future__ import annotations

import random

import pytest

from angarium.errors import AlreadyExists, CorruptData, StorageError
from angarium.ids import Incarnation, NodeId
from angarium.log import folder_identity
from angarium.log.folder_identity import FolderIdentity, draw_incarnation
from angarium.log.memory_disk import MemoryDisk
from angarium.testing.disk import SimulatedDisk

OURS = FolderIdentity(cluster_id=7 << 100, node_id=NodeId(3), incarnation=Incarnation(0xABC))


def test_an_operator_can_read_it() -> None:
    disk = MemoryDisk()
    folder_identity.create(disk, OURS)
    text = disk.open("identity").pread(1000, 0).decode()
    assert "node 3\n" in text
    assert "incarnation 000000000abc\n" in text


def test_a_second_identity_is_refused() -> None:
    disk = MemoryDisk()
    folder_identity.create(disk, OURS)
    with pytest.raises(AlreadyExists):
        folder_identity.create(disk, OURS)


def test_data_without_an_identity_is_an_error_and_gets_no_new_one() -> None:
    disk = MemoryDisk()
    disk.make_folder("wal")
    with pytest.raises(CorruptData, match="missing beside wal"):
        folder_identity.load(disk)
    with pytest.raises(CorruptData):
        folder_identity.create(disk, OURS)


def test_every_damaged_byte_and_every_cut_is_noticed() -> None:
    disk = MemoryDisk()
    folder_identity.create(disk, OURS)
    content = disk.open("identity").pread(1000, 0)
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            check_damaged(bytes(damaged))
        check_damaged(content[:position])
    check_damaged(content + b"\n")


def check_damaged(content: bytes) -> None:
    disk = MemoryDisk()
    disk.create("identity").pwrite([content], 0)
    with pytest.raises(CorruptData, match="damaged"):
        folder_identity.load(disk)


def test_somebody_elses_data_is_told() -> None:
    disk = MemoryDisk()
    folder_identity.create(disk, OURS)
    theirs = FolderIdentity(cluster_id=7 << 100, node_id=NodeId(4), incarnation=Incarnation(0xABC))
    with pytest.raises(StorageError, match="belongs to"):
        folder_identity.check(disk, theirs)


def test_a_power_loss_leaves_all_of_it_or_nothing() -> None:
    for seed in range(30):
        disk = SimulatedDisk(random.Random(seed))
        draft = disk.create("identity.draft")
        draft.pwrite([b"half an iden"], 0)
        disk.power_loss()
        assert folder_identity.load(disk) is None
        folder_identity.create(disk, OURS)
        disk.power_loss()
        assert folder_identity.load(disk) == OURS


def test_incarnations_are_drawn_anew() -> None:
    dice = random.Random(1)
    drawn = {draw_incarnation(dice.getrandbits) for _ in range(100)}
    assert len(drawn) == 100
    assert all(0 <= one < 1 << 48 for one in drawn)
    assert draw_incarnation(dice.getrandbits) != draw_incarnation(dice.getrandbits)
