"""The plan of a replay: which offsets, in which portions. Made once, and then only followed.

A portion is one transaction. Whoever follows the same plan makes the same portions, so a portion
that was written before is recognised by its number.
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
"""At most so much in one transaction, by the size of the first records: a partition keeps no more
than 256 MiB of what is not decided yet."""

PACE_S: Final = 2.0
"""With a rate, a portion is what may go in so many seconds: readers get it in even steps."""


class Part(msgspec.Struct, frozen=True, array_like=True):
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
    parts: tuple[Part, ...]
    portion_records: int
    cluster: str = ""
    """Where the topic is; empty for a lake."""
    lake: str | None = None
    archive: str | None = None

    @property
    def records(self) -> int:
        """How many offsets there are."""
        return sum(part.stop - part.start for part in self.parts)

    def portions(self) -> Iterator[list[OffsetRange]]:
        """Yield the ranges of each portion, in order; partitions go forward side by side."""
        at = {(self.topic, part.partition): part.start for part in self.parts}
        stops = {(self.topic, part.partition): part.stop for part in self.parts}
        while waiting := {
            place: stops[place] - at[place] for place in at if stops[place] > at[place]
        }:
            portion = []
            for place, count in sorted(allotted(waiting, self.portion_records).items()):
                if count:
                    start = at[place]
                    at[place] = start + count
                    portion.append(OffsetRange(*place, start, start + count, self.topic_id))
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
        parts=tuple(Part(one.partition, one.start, one.stop) for one in sorted(ranges)),
        portion_records=portion,
        cluster=cluster,
        lake=wanted.lake,
        archive=read_options(wanted.options, is_stream=False).archive,
    )
