"""A node remembers how far the others' logs were, and recognizes one that went back in time."""

from __future__ import annotations

import pytest

from angarium.errors import CorruptData
from angarium.ids import Incarnation, NodeId, replica_id
from angarium.log import peer_ends
from angarium.log.memory_disk import MemoryDisk
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


def test_recollections_outlive_the_process() -> None:
    disk = MemoryDisk()
    assert peer_ends.load(disk) == {}
    peer_ends.save(disk, {OLD: 100, NEW: 7})
    assert peer_ends.load(disk) == {OLD: 100, NEW: 7}


def test_a_damaged_file_of_recollections_is_told() -> None:
    disk = MemoryDisk()
    peer_ends.save(disk, {OLD: 100})
    file = disk.open(peer_ends.NAME)
    file.pwrite([b"x"], 20)
    with pytest.raises(CorruptData):
        peer_ends.load(disk)
