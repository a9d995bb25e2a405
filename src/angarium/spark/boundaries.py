"""Where reading begins and ends, as the options say it, before any broker has been asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from angarium.errors import InvalidArgument
from angarium.spark.words import NUMBER_MAX, decoded, millis_micros, moment_micros

LATEST_NUMBER: Final = -1
EARLIEST_NUMBER: Final = -2
"""How an offset for each partition says "latest" and "earliest", as in Kafka's connector."""

ByPartition: TypeAlias = Mapping[str, Mapping[int, int]]
"""A number for each partition of each topic."""

_EACH: Final = '{"orders":{"0":23,"1":-2}}'
_TIMES: Final = '{"orders":{"0":1763190000000}}'


class Edge(Enum):
    """An end of every partition."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class EachOffset:
    """An offset for each partition; -2 and -1 stand for its start and its end."""

    offsets: ByPartition


@dataclass(frozen=True, slots=True)
class Since:
    """The first record appended at this time (µs) or later, in every partition."""

    micros: int


@dataclass(frozen=True, slots=True)
class SinceEach:
    """The same with a time (µs) of its own for each partition."""

    micros: ByPartition


@dataclass(frozen=True, slots=True)
class CommittedBy:
    """Where a consumer group stands: the first record that it has not settled.

    In a partition where it has never been, that is the first one.
    """

    group: str


Boundary: TypeAlias = Edge | EachOffset | Since | SinceEach | CommittedBy


def starting_offsets(option: str, text: str, *, is_stream: bool, group: str | None) -> Boundary:
    """Return what `startingOffsets` says; a batch cannot begin where nothing is yet."""
    word = text.strip().lower()
    if word == "committed":
        if group is None:
            raise InvalidArgument(f"option {option}: 'committed' needs the option groupId")
        return CommittedBy(group)
    if word == Edge.EARLIEST.value:
        return Edge.EARLIEST
    if word == Edge.LATEST.value:
        if not is_stream:
            raise InvalidArgument(f"option {option}: a batch read cannot start at 'latest'")
        return Edge.LATEST
    boundary = _each_offset(option, text, "earliest, latest, committed or " + _EACH)
    if not is_stream:
        _refuse(option, boundary, LATEST_NUMBER, "a batch read cannot start at -1 (latest)")
    return boundary


def ending_offsets(option: str, text: str) -> Boundary:
    """Return what `endingOffsets` says; nothing can end before it begins."""
    word = text.strip().lower()
    if word == Edge.LATEST.value:
        return Edge.LATEST
    if word == Edge.EARLIEST.value:
        raise InvalidArgument(f"option {option}: a read cannot end at 'earliest'")
    boundary = _each_offset(option, text, "latest or " + _EACH)
    _refuse(option, boundary, EARLIEST_NUMBER, "a read cannot end at -2 (earliest)")
    return boundary


def since(option: str, text: str) -> Since:
    """Return the time that `startingTimestamp` or `endingTimestamp` says."""
    return Since(moment_micros(option, text))


def since_each(option: str, text: str) -> SinceEach:
    """Return the times that `startingOffsetsByTimestamp` and its twin say."""
    times = decoded(option, text, dict[str, dict[int, int]], _TIMES)
    for topic, partitions in times.items():
        for partition, millis in partitions.items():
            if millis < 0:
                raise InvalidArgument(
                    f"option {option}: {topic} partition {partition} has a time before 1970"
                )
    return SinceEach(
        {
            topic: {
                partition: millis_micros(option, millis) for partition, millis in partitions.items()
            }
            for topic, partitions in times.items()
        }
    )


def _each_offset(option: str, text: str, example: str) -> EachOffset:
    offsets = decoded(option, text, dict[str, dict[int, int]], example)
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            if not EARLIEST_NUMBER <= offset <= NUMBER_MAX:
                raise InvalidArgument(
                    f"option {option}: {offset} is no offset ({topic} partition {partition})"
                )
    return EachOffset(offsets)


def _refuse(option: str, boundary: EachOffset, number: int, why: str) -> None:
    for topic, partitions in boundary.offsets.items():
        for partition, offset in partitions.items():
            if offset == number:
                raise InvalidArgument(f"option {option}: {why} ({topic} partition {partition})")
