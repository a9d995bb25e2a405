"""Backups that earlier versions of the format have made stay readable, byte for byte."""

from __future__ import annotations

from pathlib import Path

from angarium.backup.folder import FolderStore
from angarium.backup.manifest import loaded, state_of
from angarium.backup.verifying import batches_of, verified
from angarium.batch import Batch

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "backup"


def test_a_backup_from_before_there_were_layouts_is_whole() -> None:
    store = FolderStore(GOLDEN / "v1" / "backup")
    for number in (1, 2):
        assert verified(store, number, told=lambda *_: None)[1] == []
    manifest = loaded(store)
    (topic,) = manifest.topics
    assert (topic.name, topic.layouts, [one.end for one in topic.partitions]) == (
        *("orders", ()),
        [7, 7],
    )
    batches = [
        Batch.parse(one)
        for part in topic.partitions
        for file in part.files
        for one in batches_of(store, file)
    ]
    assert sum(len(one) for one in batches) == manifest.records == 14
    positions = state_of(store, manifest).positions
    assert {one.group for kept in positions for one in kept.positions} == {"billing"}
