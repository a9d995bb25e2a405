"""Imports: a crash anywhere leaves the old log or the new one, and what was copied is reused."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from tests.unit.log.cutting_disk import Cut, CuttingDisk
from tests.unit.log.stamped_batches import contents, stamped

from angarium.errors import CorruptData
from angarium.ids import Offset
from angarium.log.memory_disk import MemoryDisk, MemoryFile
from angarium.log.segments import Manifest, PartitionLog, SegmentConfig, SegmentImport
from angarium.log.segments.names import FOOTER, IMPORT_FOOTER, offsets_named
from angarium.testing.disk import SimulatedDisk

CONFIG = SegmentConfig(segment_bytes=900, index_bytes=300, preallocate_bytes=256)
OTHER = SegmentConfig(segment_bytes=1300, index_bytes=300, preallocate_bytes=256)
"""A source that cuts its segments elsewhere."""


def source_log(config: SegmentConfig = CONFIG, *, start: int = 0, end: int = 40) -> PartitionLog:
    log = PartitionLog.open(MemoryDisk(), "source", config)
    while log.end_offset < end:
        log.append([stamped(log.end_offset, 2)])
    log.sync()
    log.trim(Offset(start))
    log.collect()
    return log


def old_log(disk: SimulatedDisk, *, end: int = 20) -> list[bytes]:
    """Put a shorter log of the same history on `disk`, some of it not synced."""
    log = PartitionLog.open(disk, "p", CONFIG)
    while log.end_offset < end:
        log.append([stamped(log.end_offset, 2)])
        if log.end_offset == end - 2:
            log.sync()
    flush = log.take(sync=False)
    assert flush is not None
    log.write(flush)
    log.flushed(flush)
    batches = contents(log)
    log.close()
    return batches


def carry_out(disk: CuttingDisk | SimulatedDisk, source: PartitionLog, manifest: Manifest) -> int:
    importing = SegmentImport.begin(disk, "p", manifest, chunk_bytes=350)
    chunks = 0
    while (wanted := importing.missing()) is not None:
        importing.write(wanted.segment, wanted.position, source.read_segment(*wanted))
        chunks += 1
    importing.finish()
    return chunks


@pytest.mark.parametrize("config", [CONFIG, OTHER], ids=["same cuts", "other cuts"])
@pytest.mark.parametrize("start", [0, 30])
def test_a_crash_before_any_change_leaves_the_old_log_or_the_new(
    config: SegmentConfig, start: int
) -> None:
    source = source_log(config, start=start)
    manifest = source.manifest()
    whole = CuttingDisk(SimulatedDisk(random.Random(0)))
    chunks = carry_out(whole, source, manifest)
    for changes in range(whole.changes):
        disk = SimulatedDisk(random.Random(changes))
        old = old_log(disk)
        with suppress(Cut):  # what was there already may make it shorter than the limit
            carry_out(CuttingDisk(disk, changes_max=changes), source, manifest)
        disk.power_loss()
        log = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(18))
        assert not log.damage, changes
        found = contents(log)
        is_new = log.end_offset == manifest.end_offset
        assert found == (contents(source) if is_new else old[: len(found)]), changes
        assert is_new or log.end_offset >= 18
        log.close()
        # And whatever was left, the import can be carried out now.
        assert carry_out(disk, source, manifest) <= chunks
        log = PartitionLog.open(
            disk, "p", CONFIG, start_offset=Offset(start), durable_until=manifest.end_offset
        )
        assert (contents(log), log.damage) == (contents(source), ())
        assert log.manifest() == manifest


def test_an_import_is_resumed_where_it_stopped() -> None:
    source = source_log()
    manifest = source.manifest()
    disk = SimulatedDisk(random.Random(5))
    importing = SegmentImport.begin(disk, "p", manifest, chunk_bytes=350)
    copied = 0
    for _ in range(6):
        wanted = importing.missing()
        assert wanted is not None
        importing.write(wanted.segment, wanted.position, source.read_segment(*wanted))
        copied += wanted.length
    disk.crash()
    again = SegmentImport.resume(disk, "p", chunk_bytes=350)
    assert again is not None
    assert again.manifest == manifest
    rest = 0
    while (wanted := again.missing()) is not None:
        again.write(wanted.segment, wanted.position, source.read_segment(*wanted))
        rest += wanted.length
    # At most one batch, which the crash met half copied, is asked for twice.
    assert copied + rest <= manifest.total_bytes + len(stamped(0, 2))
    again.finish()
    assert contents(PartitionLog.open(disk, "p", CONFIG)) == contents(source)


def test_each_chunk_is_on_disk_before_the_next_is_asked_for() -> None:
    """A whole segment at once would keep the disk from the node's log."""
    source = source_log(SegmentConfig(segment_bytes=1 << 20), end=80)
    manifest = source.manifest()
    (only,) = manifest.segments
    disk = SimulatedDisk(random.Random(5))
    importing = SegmentImport.begin(disk, "p", manifest, chunk_bytes=350)
    copied = 0
    while copied < only.bytes // 2:
        wanted = importing.missing()
        assert wanted is not None
        importing.write(wanted.segment, wanted.position, source.read_segment(*wanted))
        copied += wanted.length
    disk.power_loss()
    again = SegmentImport.resume(disk, "p", chunk_bytes=350)
    assert again is not None
    wanted = again.missing()
    assert wanted is not None
    assert copied - len(stamped(0, 2)) <= wanted.position <= copied


def test_a_segment_is_verified_while_it_comes_and_not_once_more_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = source_log(SegmentConfig(segment_bytes=1 << 20), end=80)
    read = 0
    pread = MemoryFile.pread

    def counted(file: MemoryFile, length: int, position: int) -> bytes:
        nonlocal read
        found = pread(file, length, position)
        read += len(found)
        return found

    importing = SegmentImport.begin(MemoryDisk(), "p", source.manifest(), chunk_bytes=350)
    most = 0
    while (wanted := importing.missing()) is not None:
        chunk = source.read_segment(*wanted)
        with monkeypatch.context() as patched:
            patched.setattr(MemoryFile, "pread", counted)
            read = 0
            importing.write(wanted.segment, wanted.position, chunk)
        most = max(most, read)
    # A chunk, and what came before of a batch that it completes.
    assert 0 < most <= 2 * (350 + len(stamped(0, 2)))
    importing.finish()


def test_damaged_local_segments_are_replaced_and_good_ones_kept() -> None:
    source = source_log()
    manifest = source.manifest()
    disk = SimulatedDisk(random.Random(5))
    carry_out(disk, source, manifest)
    disk.flip_bit(f"p/{manifest.segments[1].base_offset:020d}.seg", 200)
    importing = SegmentImport.begin(disk, "p", manifest)
    wanted = importing.missing()
    assert wanted is not None
    assert wanted.segment == manifest.segments[1].base_offset
    importing.write(wanted.segment, wanted.position, source.read_segment(*wanted))
    assert importing.missing() is None
    importing.finish()
    log = PartitionLog.open(disk, "p", CONFIG, durable_until=manifest.end_offset)
    assert contents(log) == contents(source)


def test_a_segment_removed_meanwhile_is_asked_for_again() -> None:
    source = source_log()
    manifest = source.manifest()
    disk = SimulatedDisk(random.Random(5))
    carry_out(disk, source, manifest)
    importing = SegmentImport.begin(disk, "p", manifest)
    assert importing.missing() is None
    disk.remove("p/00000000000000000000.seg")
    with pytest.raises(CorruptData, match="ask for it again"):
        importing.finish()
    wanted = importing.missing()
    assert wanted is not None
    assert wanted.segment == 0


def test_an_empty_manifest_empties_the_log() -> None:
    disk = SimulatedDisk(random.Random(5))
    old_log(disk)
    carry_out(disk, source_log(), Manifest(Offset(90), Offset(90)))
    log = PartitionLog.open(disk, "p", CONFIG, durable_until=Offset(90))
    assert (log.start_offset, log.end_offset, log.damage) == (90, 90, ())


@pytest.mark.parametrize("position", range(0, 60, 3))
def test_a_damaged_manifest_is_noticed(position: int) -> None:
    encoded = bytearray(source_log().manifest().encode())
    encoded[position] ^= 4
    with pytest.raises(CorruptData):
        Manifest.decode(encoded)


@pytest.mark.parametrize(
    "manifest",
    [
        Manifest(Offset(5), Offset(4)),
        Manifest(Offset(0), Offset(4)),
        Manifest(Offset(0), Offset(50), source_log().manifest().segments),
        Manifest(Offset(0), Offset(40), source_log().manifest().segments[::-1]),
        Manifest(Offset(0), Offset(40), source_log().manifest().segments[1:]),
    ],
)
def test_a_manifest_whose_segments_do_not_adjoin_is_refused(manifest: Manifest) -> None:
    with pytest.raises(CorruptData):
        Manifest.decode(manifest.encode())


def test_segments_have_their_footers_before_the_import_is_finished() -> None:
    source = source_log()
    disk = SimulatedDisk(random.Random(3))
    importing = SegmentImport.begin(disk, "p", source.manifest(), chunk_bytes=350)
    while (wanted := importing.missing()) is not None:
        importing.write(wanted.segment, wanted.position, source.read_segment(*wanted))
    bases = [info.base_offset for info in importing.manifest.segments]
    assert offsets_named(disk, "p", IMPORT_FOOTER) == bases
    importing.finish()
    assert offsets_named(disk, "p", IMPORT_FOOTER) == []
    assert offsets_named(disk, "p", FOOTER) == bases


def test_a_footer_of_an_earlier_attempt_is_found_out() -> None:
    old, new = source_log(CONFIG), source_log(OTHER, end=60)
    disk = SimulatedDisk(random.Random(4))
    importing = SegmentImport.begin(disk, "p", old.manifest(), chunk_bytes=350)
    while (wanted := importing.missing()) is not None:
        importing.write(wanted.segment, wanted.position, old.read_segment(*wanted))
    carry_out(disk, new, new.manifest())
    log = PartitionLog.open(disk, "p", CONFIG)
    assert contents(log) == contents(new)
    assert log.manifest() == new.manifest()
