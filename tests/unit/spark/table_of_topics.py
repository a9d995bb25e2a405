"""A cluster as a table: what planning is tested against, without a broker."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.api import PartitionInfo, Start, StartAt, TopicConfig, TopicInfo
from angarium.errors import AngariumError, NotFound, NotLeader
from angarium.ids import Micros, Offset, TopicId
from angarium.spark.answering import NobodyAnswers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass
class Log:
    """One partition: its first offset and the append time (µs) of each record from there on."""

    times: list[int] = field(default_factory=list)
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.times)

    def append(self, count: int, *, time: int = 0) -> None:
        self.times += [time] * count

    def trim(self, start: int) -> None:
        self.times = self.times[start - self.start :]
        self.start = start


class TableOfTopics:
    """Topics with their logs; a test changes them as it likes."""

    def __init__(self, **partitions: int) -> None:
        self.logs: dict[str, list[Log]] = {}
        self.ids: dict[str, int] = {}
        self.record_size = 100.0
        self.groups: dict[str, dict[tuple[str, int], int]] = {}
        self.refusal: AngariumError | None = None
        """What reports of groups meet."""
        self.silent: set[tuple[str, int]] = set()
        """Partitions that nobody answers for."""
        self.copies: dict[tuple[str, int], int] = {}
        """Where copies end of which nodes tell meanwhile."""
        self.patience: list[float] = []
        """How long it was last waited for each partition."""
        self.layouts: dict[str, tuple[int, ...]] = {}
        self.fences: dict[tuple[str, int], tuple[int, ...]] = {}
        """Where layouts begin in partitions that were there before them."""
        self.untold: set[tuple[str, int]] = set()
        """Partitions of which topics tell nothing, though their leaders answer."""
        self.reports: list[dict[tuple[str, int], int]] = []
        self._next_id = 1
        for name, count in partitions.items():
            self.create(name, count)

    def create(self, name: str, partitions: int) -> None:
        self.logs[name] = [Log() for _ in range(partitions)]
        self.ids[name] = self._next_id
        self._next_id += 1

    def delete(self, name: str) -> None:
        del self.logs[name], self.ids[name]

    def topics(self) -> Mapping[str, TopicInfo]:
        return {
            name: TopicInfo(
                id=TopicId(self.ids[name]),
                name=name,
                config=TopicConfig(),
                partitions=tuple(self._partition(name, number) for number in range(len(logs))),
                created_at=Micros(0),
                layouts=self.layouts.get(name, ()),
            )
            for name, logs in self.logs.items()
        }

    def _partition(self, topic: str, number: int) -> PartitionInfo:
        pair = (topic, number)
        if pair in self.untold:
            return PartitionInfo(number=number, replicas=())
        end = self.logs[topic][number].end if topic in self.layouts else None
        end = self.copies.get(pair, end)
        return PartitionInfo(
            number=number,
            replicas=(),
            end_offset=None if end is None else Offset(end),
            fences=tuple(map(Offset, self.fences.get(pair, ()))),
        )

    def offsets_within(
        self, wanted: Sequence[tuple[str, int, Start]], patience_s: Sequence[float]
    ) -> list[int | AngariumError]:
        self.patience = list(patience_s)
        return [
            NotLeader()
            if (topic, number) in self.silent
            else self._offset(self.logs[topic][number], start)
            for topic, number, start in wanted
        ]

    def offsets(self, wanted: Sequence[tuple[str, int, Start]]) -> list[int]:
        for topic, number, _ in wanted:
            if (topic, number) in self.silent:
                raise NobodyAnswers(topic, number, NotLeader())
        return [self._offset(self.logs[topic][number], start) for topic, number, start in wanted]

    def group_floors(self, group: str) -> Mapping[tuple[str, int], int]:
        if group not in self.groups:
            raise NotFound(f"there is no group {group}")
        return self.groups[group]

    def report(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        if self.refusal is not None:
            raise self.refusal
        if gone := {topic for topic, _ in offsets} - self.logs.keys():
            raise NotFound(f"there is no topic {min(gone)}")
        if self.silent & offsets.keys():
            raise NotLeader
        self.reports.append(dict(offsets))
        self.groups[group] = dict(offsets)

    def record_bytes(self, topic: str, partition: int, offset: int) -> float | None:
        if (topic, partition) in self.silent:
            raise NotLeader
        log = self.logs[topic][partition]
        return self.record_size if log.start <= offset < log.end else None

    def _offset(self, log: Log, start: Start) -> int:
        match start.at:
            case StartAt.EARLIEST:
                return log.start
            case StartAt.LATEST:
                return log.end
            case StartAt.OFFSET:
                return start.value
            case StartAt.TIMESTAMP:
                return log.start + bisect_left(log.times, start.value)
