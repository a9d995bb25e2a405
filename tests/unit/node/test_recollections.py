"""A node remembers how far the others' logs were, and recognizes one that went back in time."""

from __future__ import annotations

import pytest

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData, StorageError
from angarium.ids import Incarnation, NodeId, replica_id
from angarium.log import peer_ends
from angarium.log.disk import replace_file
from angarium.log.memory_disk import MemoryDisk, MemoryFile
from angarium.log.peer_ends import SLOT_BYTES, PeerEnds
from angarium.node.recollections import Recollections

OLD = replica_id(NodeId(2), Incarnation(7))
NEW = replica_id(NodeId(2), Incarnation(8))


def test_a_log_that_ends_where_it_was_or_later_is_welcome() -> None:
    known = Recollections({OLD: 100})
    assert known.objection(OLD, 100) is None
    assert known.objection(OLD, 120) is None
    assert known.objection(NEW, 5) is None, "another disk is somebody else"


def test_a_log_that_ends_earlier_is_not_and_it_is_said_what_to_do() -> None:
    reason = Recollections({OLD: 100}).objection(OLD, 99)
    assert reason is not None
    assert "node 2 ended at 100" in reason
    assert "ANGARIUM_NODE_ID=2" in reason


def test_a_log_that_is_gone_went_back_as_far_as_it_can() -> None:
    assert Recollections({OLD: 100}).objection(OLD, 0) is not None
    assert Recollections().objection(OLD, 0) is None, "a node that was never met has just come"


def test_only_what_is_further_is_news_and_another_disk_replaces_the_first() -> None:
    known = Recollections()
    assert known.note(OLD, 100)
    assert not known.note(OLD, 90)
    assert not known.note(OLD, 0)
    assert known.note(NEW, 3)
    assert known.ends == {NEW: 3}


def test_recollections_outlive_the_process_and_are_written_in_place() -> None:
    disk = MemoryDisk()
    ends = PeerEnds(disk)
    assert ends.load() == {}
    for number in range(1, 5):
        ends.save({OLD: 100 * number, NEW: 7})
        assert PeerEnds(disk).load() == {OLD: 100 * number, NEW: 7}
    again = PeerEnds(disk)
    again.load()
    again.save({OLD: 900})
    assert PeerEnds(disk).load() == {OLD: 900}
    many = {replica_id(NodeId(node), Incarnation(node)): 1 << 60 for node in range(1, 400)}
    again.save(many)
    assert PeerEnds(disk).load() == many


@pytest.mark.parametrize("slot", range(2))
def test_a_slot_that_a_power_cut_has_spoiled_leaves_the_other_one(slot: int) -> None:
    disk = MemoryDisk()
    ends = PeerEnds(disk)
    ends.save({OLD: 100})
    ends.save({OLD: 200})
    # The first saving has the number 1, and is in the second slot.
    disk.open(peer_ends.NAME).pwrite([b"x"], slot * SLOT_BYTES + 20)
    assert PeerEnds(disk).load() == {OLD: 100 if slot == 0 else 200}


def test_a_damaged_file_of_recollections_is_told() -> None:
    disk = MemoryDisk()
    PeerEnds(disk).save({OLD: 100})
    disk.open(peer_ends.NAME).pwrite([b"x"], SLOT_BYTES + 20)
    with pytest.raises(CorruptData):
        PeerEnds(disk).load()


def test_what_an_earlier_release_has_written_is_read_until_there_is_something_newer() -> None:
    disk = MemoryDisk()
    body = f"angarium peers 1\n{OLD} 100\n".encode()
    replace_file(disk, "peers", body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode())
    ends = PeerEnds(disk)
    assert ends.load() == {OLD: 100}
    ends.save({OLD: 300})
    assert PeerEnds(disk).load() == {OLD: 300}
    replace_file(disk, "peers", body)
    disk.remove(peer_ends.NAME)
    assert PeerEnds(disk).load() == {}, "a damaged one is old, and as good as none"


class Refusing(MemoryDisk):
    """A disk on which no file can be made or opened."""

    trouble: Exception | None = None

    def create(self, name: str) -> MemoryFile:
        self._refuse()
        return super().create(name)

    def open(self, name: str) -> MemoryFile:
        self._refuse()
        return super().open(name)

    def _refuse(self) -> None:
        if self.trouble is not None:
            raise self.trouble


def test_an_open_file_is_written_although_no_descriptor_is_left() -> None:
    disk = Refusing()
    ends = PeerEnds(disk)
    ends.save({OLD: 100})
    disk.trouble = StorageError("open marks: Too many open files")
    ends.save({OLD: 200})
    disk.trouble = None
    assert PeerEnds(disk).load() == {OLD: 200}
