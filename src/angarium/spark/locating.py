"""From options to numbers: which partitions are meant, and where in them a boundary lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from angarium.api import Start, StartAt
from angarium.errors import InvalidArgument, NotFound
from angarium.spark.boundaries import (
    EARLIEST_NUMBER,
    LATEST_NUMBER,
    CommittedBy,
    EachOffset,
    Edge,
    Since,
    SinceEach,
)
from angarium.spark.options import Assigned, Matching, Named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from angarium.api import TopicInfo
    from angarium.spark.boundaries import Boundary, ByPartition
    from angarium.spark.cluster import Cluster
    from angarium.spark.options import Choice

OWN_TOPICS: Final = ("angarium.", "angarium-")
"""How topics of the broker itself begin, and those that Spark queries and pipelines keep."""

_EDGES: Final = {Edge.EARLIEST: Start(StartAt.EARLIEST), Edge.LATEST: Start(StartAt.LATEST)}
_NUMBERS: Final = {
    EARLIEST_NUMBER: Start(StartAt.EARLIEST),
    LATEST_NUMBER: Start(StartAt.LATEST),
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """Partitions that are meant, in topics as they are now."""

    partitions: Mapping[str, tuple[int, ...]]
    topics: Mapping[str, int]
    """The topics' ids."""

    def topic_partitions(self) -> list[tuple[str, int]]:
        """Return each topic and partition, in order."""
        return [(topic, one) for topic, numbers in self.partitions.items() for one in numbers]


def chosen(choice: Choice, topics: Mapping[str, TopicInfo], *, must_exist: bool = True) -> Chosen:
    """Return the partitions that `choice` means among `topics`.

    A topic or partition asked for by name raises `NotFound` if it is not there, or is left out.
    """
    match choice:
        case Named(names):
            wanted = dict.fromkeys(names)
        case Matching(pattern):
            matches = re.compile(pattern).fullmatch
            wanted = {
                name: None
                for name in topics
                if matches(name)
                and (not name.startswith(OWN_TOPICS) or pattern.startswith("angarium"))
            }
        case Assigned(partitions):
            return _assigned(partitions, topics, must_exist=must_exist)
        case _:
            assert_never(choice)
    if must_exist and (missing := sorted(wanted.keys() - topics.keys())):
        raise NotFound(f"there is no topic {', '.join(missing)}")
    there = sorted(wanted.keys() & topics.keys())
    return Chosen(
        {name: tuple(one.number for one in topics[name].partitions) for name in there},
        {name: int(topics[name].id) for name in there},
    )


def _assigned(
    partitions: Mapping[str, tuple[int, ...]],
    topics: Mapping[str, TopicInfo],
    *,
    must_exist: bool,
) -> Chosen:
    found: dict[str, tuple[int, ...]] = {}
    for topic, numbers in partitions.items():
        there = {one.number for one in topics[topic].partitions} if topic in topics else set()
        missing = [one for one in numbers if one not in there]
        if must_exist and missing:
            raise NotFound(f"there is no partition {missing[0]} of a topic {topic}")
        kept = tuple(one for one in numbers if one in there)
        if kept:
            found[topic] = kept
    return Chosen(found, {topic: int(topics[topic].id) for topic in found})


def located(
    cluster: Cluster,
    chosen: Chosen,
    boundary: Boundary,
    *,
    is_start: bool,
    must_match_time: bool = True,
) -> ByPartition:
    """Return the offset at which `boundary` lies in each partition.

    A start by time where no record is that young is refused, or lies at the end; an end by time
    then lies at the end.
    """
    pairs = chosen.topic_partitions()
    option = _option(boundary, is_start=is_start)
    match boundary:
        case Edge():
            starts = [_EDGES[boundary] for _ in pairs]
        case EachOffset(numbers):
            values = _each(numbers, pairs, option)
            starts = [_NUMBERS.get(one, Start(StartAt.OFFSET, one)) for one in values]
        case Since(micros):
            starts = [Start(StartAt.TIMESTAMP, micros) for _ in pairs]
        case SinceEach(times):
            starts = [Start(StartAt.TIMESTAMP, one) for one in _each(times, pairs, option)]
        case CommittedBy(group):
            floors = cluster.group_floors(group)
            starts = [
                Start(StartAt.OFFSET, floors[pair]) if pair in floors else Start(StartAt.EARLIEST)
                for pair in pairs
            ]
        case _:
            assert_never(boundary)
    found = cluster.offsets([(*pair, start) for pair, start in zip(pairs, starts, strict=True)])
    offsets = dict(zip(pairs, found, strict=True))
    if is_start and must_match_time and isinstance(boundary, Since | SinceEach):
        _refuse_unmatched(cluster, offsets, option)
    return by_topic(offsets)


def by_topic(offsets: Mapping[tuple[str, int], int]) -> dict[str, dict[int, int]]:
    """Return the same numbers, partition by partition within each topic."""
    grouped: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in offsets.items():
        grouped.setdefault(topic, {})[partition] = offset
    return grouped


def _option(boundary: Boundary, *, is_start: bool) -> str:
    """Return how the option is called that gave the boundary, for refusals."""
    side = "starting" if is_start else "ending"
    match boundary:
        case Since():
            return f"{side}Timestamp"
        case SinceEach():
            return f"{side}OffsetsByTimestamp"
    return f"{side}Offsets"


def _each(numbers: ByPartition, pairs: list[tuple[str, int]], option: str) -> list[int]:
    named = {(topic, one) for topic, partitions in numbers.items() for one in partitions}
    if missing := sorted(set(pairs) - named):
        raise InvalidArgument(f"option {option} says nothing about {_spoken(missing)}")
    if unknown := sorted(named - set(pairs)):
        raise InvalidArgument(f"option {option} speaks of {_spoken(unknown)}, which is not read")
    return [numbers[topic][partition] for topic, partition in pairs]


def _refuse_unmatched(
    cluster: Cluster, offsets: Mapping[tuple[str, int], int], option: str
) -> None:
    # Ends asked for after the offsets: whatever lies below its end was found, not missed.
    ends = cluster.offsets([(*pair, Start(StartAt.LATEST)) for pair in offsets])
    late = [pair for pair, end in zip(offsets, ends, strict=True) if offsets[pair] >= end]
    if late:
        raise InvalidArgument(
            f"option {option}: {_spoken(late)} has no record that is so young; "
            "startingOffsetsByTimestampStrategy=latest starts at the end there"
        )


def _spoken(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{topic} partition {partition}" for topic, partition in pairs)
