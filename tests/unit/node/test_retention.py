"""What a topic's settings keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.log.disk_images import disk_with, flipped
from tests.unit.log.segments.test_segment_damage import (
    BATCHES,
    CONFIG,
    END,
    FOLDER,
    IMAGE,
    SEALED,
)

from angarium.batch import encode, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import PartitionLog, SegmentConfig
from angarium.machine.catalog import TopicSettings
from angarium.node.retention import limits_anything, retained_from

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 1_000_000


@pytest.fixture
def log() -> PartitionLog:
    """Ten records, one a second from second 1 on, each in a segment of its own."""
    log = PartitionLog.open(MemoryDisk(), "p", SegmentConfig(segment_bytes=256))
    for number in range(10):
        batch = encode([b"x" * 100])
        time = Micros((number + 1) * SECOND)
        stamp(batch, base_offset=Offset(number), term=Term(1), append_time=time)
        log.append([batch])
    return log


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (lambda _: TopicSettings(), 0),
        (lambda _: TopicSettings(retention_micros=5 * SECOND), 4),
        (lambda _: TopicSettings(retention_micros=100 * SECOND), 0),
        (lambda size: TopicSettings(retention_bytes=3 * size), 7),
        (lambda size: TopicSettings(retention_bytes=100 * size), 0),
        (lambda _: TopicSettings(retention_bytes=1), 9),
        (lambda size: TopicSettings(retention_micros=5 * SECOND, retention_bytes=8 * size), 4),
    ],
)
def test_the_stricter_of_age_and_size_decides(
    log: PartitionLog, settings: Callable[[int], TopicSettings], expected: int
) -> None:
    size = next(iter(log.segments)).bytes
    assert retained_from(log, settings(size), now=Micros(10 * SECOND)) == expected


@pytest.mark.parametrize(
    ("settled", "retention", "expected"),
    [
        (None, None, 0),  # nobody has consumed anything: all of it is waited for
        (0, None, 0),
        (7, None, 7),
        (3, 5 * SECOND, 4),  # age is a bound also for those who lag behind
        (7, 5 * SECOND, 7),
        (None, 5 * SECOND, 4),
        (99, None, 10),
    ],
)
def test_what_every_group_has_settled_need_not_be_kept(
    log: PartitionLog, settled: int | None, retention: int | None, expected: int
) -> None:
    settings = TopicSettings(until_consumed=True, retention_micros=retention)
    assert retained_from(log, settings, now=Micros(10 * SECOND), settled=settled) == expected


def test_a_topic_that_does_not_look_at_groups_keeps_what_they_have_settled(
    log: PartitionLog,
) -> None:
    assert not limits_anything(TopicSettings())
    assert limits_anything(TopicSettings(until_consumed=True))
    settings = TopicSettings(retention_micros=100 * SECOND)
    assert retained_from(log, settings, now=Micros(10 * SECOND), settled=7) == 0


def test_what_was_seen_to_come_lately_stays_however_old_it_looks(log: PartitionLog) -> None:
    settings = TopicSettings(retention_micros=5 * SECOND)
    assert retained_from(log, settings, now=Micros(100 * SECOND), young=Offset(3)) == 3
    assert retained_from(log, settings, now=Micros(10 * SECOND), young=Offset(9)) == 4


def test_damage_where_the_limit_lies_keeps_everything_and_ends_nobody() -> None:
    flip = flipped(IMAGE, SEALED[0], len(BATCHES[0]) + 60, bit=0)
    damaged = PartitionLog.open(disk_with(flip), FOLDER, CONFIG, durable_until=Offset(END))
    settings = TopicSettings(retention_micros=10_000)
    # Two batches would be too old, the second of which cannot be read.
    assert retained_from(damaged, settings, now=Micros(12_500)) == 0
    assert damaged.damage, "and it is known now, so that it is mended"
    whole = PartitionLog.open(disk_with(IMAGE), FOLDER, CONFIG, durable_until=Offset(END))
    assert retained_from(whole, settings, now=Micros(12_500)) == 4
