"""For a small log, every flipped byte, every cut and every lost file is harmless or detected."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest
from tests.unit.log.disk_images import cut, disk_with, flipped, image_of, without
from tests.unit.log.stamped_batches import contents, stamped

from angarium.batch import Batch
from angarium.errors import CorruptData
from angarium.ids import Micros, Offset
from angarium.log.memory_disk import MemoryDisk
from angarium.log.scrub import Scrub
from angarium.log.segments import PartitionLog, SegmentConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.log.disk_images import Image

FOLDER = "p"
CONFIG = SegmentConfig(segment_bytes=520, index_bytes=200, preallocate_bytes=64)
BATCHES = [stamped(base, 2) for base in range(0, 8, 2)] + [
    stamped(base, 1) for base in (20, 21, 22)
]
END = 23
DURABLE = [0, 5, 20, END]
"""What the owner may believe: nothing, something inside a batch, up to the gap, everything."""


def small_log() -> Image:
    """Return a log of sealed segments, a gap, and an active segment with preallocated room."""
    disk = MemoryDisk()
    log = PartitionLog.open(disk, FOLDER, CONFIG)
    log.append(BATCHES[:4])
    log.skip_to(Offset(20))
    log.append(BATCHES[4:])
    log.sync()
    log.close()
    return image_of(disk, FOLDER)


IMAGE = small_log()
SEALED = sorted(name.replace(".foot", ".seg") for name in IMAGE if name.endswith(".foot"))
ACTIVE = next(name for name in IMAGE if name.endswith(".seg") and name not in SEALED)


def served(log: PartitionLog) -> list[bytes]:
    """Return what a patient reader gets: everything that is not reported as damaged."""
    found: list[bytes] = []
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            batches = log.read(offset, 1)
        except CorruptData:
            offset = Offset(offset + 1)
            continue
        if not batches:
            break
        found.append(bytes(batches[0]))
        offset = Batch.trusted(batches[0]).next_offset
    return found


def check(image: Image, *, durable_until: int) -> bool:
    """Open a damaged log, let the write-ahead log come again; return whether damage was seen.

    If none was seen, nothing may be missing. In any case nothing may be invented or reordered.
    """
    disk = disk_with(image)
    log = PartitionLog.open(disk, FOLDER, CONFIG, durable_until=Offset(durable_until))
    assert log.end_offset >= durable_until
    detected = bool(log.damage)
    for batch in BATCHES:
        base = int.from_bytes(batch[8:16], "little")
        if base >= durable_until or base >= log.end_offset:
            try:
                if base > log.end_offset:
                    log.skip_to(Offset(base))
                log.append([batch])
            except CorruptData:
                detected = True
    log.sync()
    found = served(log)
    detected = detected or bool(log.damage)
    assert [batch for batch in BATCHES if batch in found] == found
    assert detected or found == BATCHES
    scrub = list(Scrub(log))
    assert detected or not any(scrub)
    return detected


def damaged_images() -> Iterator[tuple[str, Image]]:
    for name, content in IMAGE.items():
        for position in range(len(content)):
            yield f"flip {name} at {position}", flipped(IMAGE, name, position, bit=position % 8)
        for length in range(len(content)):
            yield f"cut {name} to {length}", cut(IMAGE, name, length)
        yield f"lose {name}", without(IMAGE, name)


@pytest.mark.parametrize("durable_until", DURABLE)
def test_every_flip_and_every_cut_is_harmless_or_detected(durable_until: int) -> None:
    for what, image in damaged_images():
        try:
            check(image, durable_until=durable_until)
        except Exception as error:
            raise AssertionError(what) from error


def test_an_undamaged_log_raises_no_alarm() -> None:
    for durable_until in DURABLE:
        assert not check(IMAGE, durable_until=durable_until)


def test_damage_in_what_must_be_there_is_always_detected() -> None:
    for name in (*SEALED, ACTIVE):
        size = len(IMAGE[name].rstrip(b"\0"))
        for position in range(0, size, 7):
            assert check(flipped(IMAGE, name, position, bit=3), durable_until=END), position
        for length in range(0, size, 7):
            assert check(cut(IMAGE, name, length), durable_until=END), length
        assert check(without(IMAGE, name), durable_until=END), name


def test_a_torn_tail_above_what_is_durable_is_cut_without_alarm() -> None:
    base = int(ACTIVE.rpartition("/")[2].removesuffix(".seg"))
    data = IMAGE[ACTIVE].rstrip(b"\0")
    for length in range(0, len(data), 5):
        assert not check(cut(IMAGE, ACTIVE, length), durable_until=base)
        assert not check(flipped(IMAGE, ACTIVE, length, bit=1), durable_until=base)


def test_a_lost_or_damaged_footer_is_rebuilt() -> None:
    footers = [name for name in IMAGE if name.endswith(".foot")]
    for name in footers:
        for image in chain(
            [without(IMAGE, name)], (flipped(IMAGE, name, at, bit=0) for at in (0, 40))
        ):
            disk = disk_with(image)
            PartitionLog.open(disk, FOLDER, CONFIG, durable_until=Offset(END)).close()
            assert image_of(disk, FOLDER)[name] == IMAGE[name]


def test_nothing_is_cut_below_what_is_durable() -> None:
    image = flipped(IMAGE, ACTIVE, 40, bit=0)
    disk = disk_with(image)
    log = PartitionLog.open(disk, FOLDER, CONFIG, durable_until=Offset(END))
    assert [(one.from_offset, one.to_offset) for one in log.damage] == [(21, END)]
    log.append([stamped(END)])
    log.sync()
    assert image_of(disk, FOLDER)[ACTIVE] == image[ACTIVE]
    log.close()
    again = PartitionLog.open(disk, FOLDER, CONFIG, durable_until=Offset(END + 1))
    assert again.damage == log.damage
    assert contents(again, start=END) == [stamped(END)]
    with pytest.raises(CorruptData, match=r"segment \d+: offsets \[21, 23\)"):
        again.read(Offset(21), 100)


def test_a_damaged_log_offers_no_manifest() -> None:
    log = PartitionLog.open(
        disk_with(flipped(IMAGE, ACTIVE, 40, bit=0)), FOLDER, CONFIG, durable_until=Offset(END)
    )
    with pytest.raises(CorruptData, match="damaged"):
        log.manifest()


def test_batches_before_the_damage_are_still_served() -> None:
    name = SEALED[0]
    position = len(BATCHES[0]) + 60
    log = PartitionLog.open(
        disk_with(flipped(IMAGE, name, position, bit=0)), FOLDER, CONFIG, durable_until=Offset(END)
    )
    assert not log.damage, "a sealed segment is believed until it is read"
    assert list(map(bytes, log.read(Offset(0), 1 << 20))) == BATCHES[:1]
    with pytest.raises(CorruptData):
        log.read(Offset(2), 1 << 20)
    assert [one.from_offset for one in log.damage] == [2]


def test_nobody_knows_how_old_it_is_what_is_damaged() -> None:
    # Seed 62016: a leader whose segment was lost took its records for older than all others, and
    # trimmed what had just come, on every replica.
    later = Micros(1 << 60)
    whole = PartitionLog.open(disk_with(IMAGE), FOLDER, CONFIG, durable_until=Offset(END))
    assert whole.offset_at(later) == END
    for name in [*SEALED, ACTIVE]:
        lost = disk_with(without(IMAGE, name))
        log = PartitionLog.open(lost, FOLDER, CONFIG, durable_until=Offset(END))
        (damage,) = log.damage
        assert log.offset_at(later) == damage.from_offset
        # What lies before it is as old as it ever was.
        assert log.offset_at(Micros(0)) == 0
