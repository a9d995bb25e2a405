"""What a node of an earlier version left on its disk is still read, and gone on with.

`tests/golden/data` has a directory for every set of formats there has been, and
docs/reference/versions.md says when there is a new one. Only copies are opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.golden.data.described import described, faults
from tests.golden.data.driving import Driver
from tests.golden.data.files import DATA, FOLDER, copy_of, formats, names, read
from tests.golden.data.story import ORDERS, START, tell

from angarium.batch import Batch, encode
from angarium.ids import CATALOG_GROUP
from angarium.log.os_disk import OsDisk
from angarium.machine.catalog import ProducerBlock

if TYPE_CHECKING:
    from pathlib import Path

LATER = 1_800_000_000_000_000

every_directory = pytest.mark.parametrize("name", names())


def values(driver: Driver) -> list[bytes | None]:
    """Return the values of all records of the partition that the golden node leads."""
    partition = driver.host.replicas[ORDERS].partition
    found: list[bytes | None] = []
    offset = partition.log.start_offset
    while offset < partition.log.end_offset:
        views = partition.log.read(offset, 1 << 20)
        for batch in map(Batch.parse, views):
            found += [record.value for record in batch if record.offset >= START]
            offset = batch.next_offset
        if not views:
            break  # a gap reaches up to the end
    return found


def contents(folder: Path) -> dict[Path, bytes]:
    """Return every file in a folder with its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


@every_directory
def test_everything_in_it_is_read(name: str, tmp_path: Path) -> None:
    disk = copy_of(name, tmp_path / "copy")
    assert list(faults(read(name)["contents"], described(disk))) == []


@every_directory
def test_everything_in_it_is_read_as_after_a_crash(name: str, tmp_path: Path) -> None:
    disk = copy_of(name, tmp_path / "copy")
    disk.remove("wal/clean")
    assert list(faults(read(name)["contents"], described(disk))) == []


@every_directory
def test_a_node_goes_on_with_it(name: str, tmp_path: Path) -> None:
    disk = copy_of(name, tmp_path / "copy")
    driver = Driver(disk, now=LATER)
    driver.lead(CATALOG_GROUP)
    driver.lead(ORDERS)
    before = values(driver)
    applied = driver.host.replicas[ORDERS].applied
    catalog = driver.host.catalog
    assert catalog is not None
    issued = catalog.catalog.machine.next_producer
    # Enough of both that snapshots are taken and files of the log are given up.
    added = [b"written by a later version %d" % number for number in range(40)]
    for value in added:
        driver.publish(ORDERS, [encode([value])])
        driver.decide(ProducerBlock(count=1))
    driver.keep_house()
    driver.close()

    driver = Driver(disk, now=LATER)
    driver.settle()
    assert before
    assert values(driver) == [*before, *added]
    assert driver.host.replicas[ORDERS].snapshot_index > applied
    catalog = driver.host.catalog
    assert catalog is not None
    assert catalog.catalog.machine.next_producer == issued + len(added)
    driver.close()


def test_what_is_written_today_is_among_them(tmp_path: Path) -> None:
    tell(OsDisk(tmp_path))
    known = [read(name)["formats"] for name in names()]
    assert formats(tmp_path) in known, "a format has changed: see docs/reference/versions.md"


@every_directory
def test_its_formats_are_those_it_is_kept_for(name: str) -> None:
    files = formats(FOLDER / name / DATA)
    kept = read(name)["formats"]
    assert {kind: kept[kind] for kind in files if isinstance(kept[kind], str)} == {
        kind: version for kind, version in files.items() if isinstance(version, str)
    }


def test_the_story_is_told_the_same_every_time(tmp_path: Path) -> None:
    for take in ("first", "second"):
        tell(OsDisk(tmp_path / take))
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_a_missing_row_or_another_value_is_noticed_and_a_new_field_is_not() -> None:
    expected = {"nodes": [{"id": 1}, {"id": 2}], "level": 1}
    assert list(faults(expected, {"nodes": [{"id": 1, "new": 0}, {"id": 2}], "level": 1})) == []
    assert list(faults(expected, {"nodes": [{"id": 1}], "level": 1}))
    assert list(faults(expected, {"nodes": [{"id": 1}, {"id": 3}], "level": 1}))
    assert list(faults(expected, {"nodes": [{"id": 1}, {"id": 2}]}))
