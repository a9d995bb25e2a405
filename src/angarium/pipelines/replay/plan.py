"""The plan of a replay: which offsets, in which portions. Made once, and then only followed.

A portion is one transaction. The same plan gives the same portions, so a portion that was written
before is recognised by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.spark.allotment import allotted
from angarium.spark.options import read_options
from angarium.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.pipelines.jobs import Replay

PORTION_RECORDS: Final = 500_000
PORTION_BYTES: Final = 64 << 20
"""The most in one transaction, by the size of the first records: a partition keeps no more
than 256 MiB of what is not decided yet."""

PACE_S: Final = 2.0
"""With a rate, a portion is what may go in this many seconds: readers get it in even steps."""


class PlannedRange(msgspec.Struct, frozen=True, array_like=True):
    """Offsets of one partition."""

    partition: int
    start: int
    stop: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay does, fixed: no end moves while it goes on."""

    name: str
    topic: str
    topic_id: int
    into: str
    ranges: tuple[PlannedRange, ...] = msgspec.field(name="parts")
    portion_records: int
    cluster: str = ""
    """Where the topic is; empty for a lake."""
    lake: str | None = None
    archive: str | None = None

    @property
    def records(self) -> int:
        """How many offsets there are."""
        return sum(one.stop - one.start for one in self.ranges)

    def portions(self) -> Iterator[list[OffsetRange]]:
        """Yield the ranges of each portion, in order; partitions go forward side by side."""
        at = {one.partition: one.start for one in self.ranges}
        stops = {one.partition: one.stop for one in self.ranges}
        while waiting := {
            (self.topic, one): stops[one] - at[one] for one in at if stops[one] > at[one]
        }:
            portion = []
            shares = allotted(waiting, self.portion_records)
            for (topic, partition), count in sorted(shares.items()):
                if count:
                    start = at[partition]
                    stop = at[partition] = start + count
                    portion.append(OffsetRange(topic, partition, start, stop, self.topic_id))
            yield portion


def planned(
    wanted: Replay,
    ranges: list[OffsetRange],
    *,
    cluster: str,
    topic_id: int,
    record_bytes: float,
) -> Plan:
    """Return the plan for ranges of one topic whose records are about so large."""
    portion = min(PORTION_RECORDS, max(1, int(PORTION_BYTES / max(1.0, record_bytes))))
    if wanted.rate is not None:
        portion = min(portion, max(1, int(wanted.rate * PACE_S)))
    return Plan(
        name=wanted.name,
        topic=wanted.topic,
        topic_id=topic_id,
        into=wanted.into,
        ranges=tuple(PlannedRange(one.partition, one.start, one.stop) for one in sorted(ranges)),
        portion_records=portion,
        cluster=cluster,
        lake=wanted.lake,
        archive=read_options(wanted.options, is_stream=False).archive,
    )
