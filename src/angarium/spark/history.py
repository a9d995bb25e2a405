"""History and present in one table: what is archived is read from the archive, the rest from the
broker.

The seam lies, for each partition, where the archive ends. Its log says that exactly, so nothing is
read twice and nothing is left out; what retention has removed from the broker is still there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from angarium.api import Start, StartAt
from angarium.spark.lake import Lake, Stretch
from angarium.spark.rows import ROWS_PER_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from angarium.api import TopicInfo
    from angarium.errors import AngariumError
    from angarium.spark.cluster import Cluster
    from angarium.spark.ranges import OffsetRange
    from angarium.spark.rows import RowShape


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """Records of a range of offsets: those that are in this file."""

    range: OffsetRange
    file: str


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    topic: str
    ids: tuple[int, int]
    partitions: tuple[int, int]
    offsets: tuple[int, int]
    """Lowest and highest of each."""

    def may_hold(self, stretch: Stretch) -> bool:
        return (
            self.topic == stretch.topic
            and self.ids[0] <= stretch.topic_id <= self.ids[1]
            and self.partitions[0] <= stretch.partition <= self.partitions[1]
        )


class ArchivedCluster:
    """A cluster whose partitions begin where their archive begins. It is a `Cluster` for planning.

    The archive's files are listed when starts are looked up, and again when ranges are split.
    """

    def __init__(self, cluster: Cluster, path: str) -> None:
        self._cluster = cluster
        self._lake = Lake(path)
        self._files = self._listed()
        self._topics: Mapping[str, TopicInfo] = {}

    def topics(self) -> Mapping[str, TopicInfo]:
        """Return the broker's topics."""
        self._topics = self._cluster.topics()
        return self._topics

    def offsets(self, wanted: Sequence[tuple[str, int, Start]]) -> list[int]:
        """Return where starts lie; what is only in the archive counts as being there."""
        found = self._cluster.offsets(wanted)
        return [
            self._offset(topic, partition, start, offset)
            for (topic, partition, start), offset in zip(wanted, found, strict=True)
        ]

    def offsets_within(
        self, wanted: Sequence[tuple[str, int, Start]], patience_s: Sequence[float]
    ) -> list[int | AngariumError]:
        """Return the same, as far as the broker answers in time."""
        found = self._cluster.offsets_within(wanted, patience_s)
        return [
            self._offset(topic, partition, start, offset) if isinstance(offset, int) else offset
            for (topic, partition, start), offset in zip(wanted, found, strict=True)
        ]

    def group_floors(self, group: str) -> Mapping[tuple[str, int], int]:
        """Return where a group stands."""
        return self._cluster.group_floors(group)

    def report(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Say how far a group has come."""
        self._cluster.report(group, offsets)

    def record_bytes(self, topic: str, partition: int, offset: int) -> float | None:
        """Return the size of records, as far as the broker has them."""
        (first,) = self._cluster.offsets([(topic, partition, Start(StartAt.EARLIEST))])
        return self._cluster.record_bytes(topic, partition, max(first, offset))

    def parted(
        self, ranges: Sequence[OffsetRange]
    ) -> tuple[list[ArchivedRange], list[OffsetRange]]:
        """Part ranges at the seam: what to read from the archive, and what from the broker."""
        stretches = {Stretch(one.topic, one.topic_id, one.partition) for one in ranges}
        # Files are listed after the marks are read, so every file that a mark counts is among them.
        ends = self._lake.archived_to(stretches)
        self._files = self._listed()
        old: list[ArchivedRange] = []
        new: list[OffsetRange] = []
        for one in ranges:
            stretch = Stretch(one.topic, one.topic_id, one.partition)
            seam = min(max(ends.get(stretch, one.start), one.start), one.stop)
            below, above = replace(one, stop=seam), replace(one, start=seam)
            # A task for each file: they are as large as a task should be.
            old += [ArchivedRange(below, file) for file in self._holding(stretch, below)]
            if above.records:
                new.append(above)
        return old, new

    def _listed(self) -> list[_File]:
        return [_file(self._lake, row) for row in self._lake.listed()]

    def _offset(self, topic: str, partition: int, start: Start, found: int) -> int:
        if start.at not in (StartAt.EARLIEST, StartAt.TIMESTAMP):
            return found
        stretch = Stretch(topic, int(self._topics[topic].id), partition)
        files = [one for one in self._files if one.may_hold(stretch)]
        if not files:
            return found
        if start.at is StartAt.EARLIEST:
            return min(found, *(one.offsets[0] for one in files))
        (first,) = self._cluster.offsets([(topic, partition, Start(StartAt.EARLIEST))])
        if found > first:
            return found  # the broker has an older record than that, so nothing archived is meant
        return min(found, _first_since(stretch, files, start.value, found))

    def _holding(self, stretch: Stretch, wanted: OffsetRange) -> list[str]:
        holding = [
            one
            for one in self._files
            if one.may_hold(stretch)
            and one.offsets[0] < wanted.stop
            and one.offsets[1] >= wanted.start
        ]
        return [one.path for one in sorted(holding, key=lambda one: one.offsets)]


def archived_rows(shape: RowShape, wanted: ArchivedRange) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range that are in a file."""
    one = wanted.range
    columns = sorted({*shape.stored, "partition", "topic_id", "offset"})
    with pq.ParquetFile(wanted.file) as file:
        for rows in file.iter_batches(batch_size=ROWS_PER_BATCH, columns=columns):
            kept = rows.filter(_is_meant(rows, one))
            if kept.num_rows:
                yield shape.finished(one.topic, one.partition, kept)


def _is_meant(rows: pa.RecordBatch, one: OffsetRange) -> pa.Array:
    offsets = rows.column("offset")
    conditions = [
        pc.equal(rows.column("partition"), one.partition),
        pc.equal(rows.column("topic_id"), one.topic_id),
        pc.greater_equal(offsets, one.start),
        pc.less(offsets, one.stop),
    ]
    meant = conditions[0]
    for condition in conditions[1:]:
        meant = pc.and_(meant, condition)
    return meant


def _first_since(stretch: Stretch, files: list[_File], micros: int, otherwise: int) -> int:
    """Return the first archived offset whose record was appended at a time or later.

    Times ascend with offsets, so that the first file with such a record has it.
    """
    for file in sorted(files, key=lambda one: one.offsets):
        with pq.ParquetFile(file.path) as opened:
            rows = opened.read(["offset", "timestamp", "partition", "topic_id"])
        late = pc.and_(
            pc.greater_equal(rows.column("timestamp").cast(pa.int64()), micros),
            pc.and_(
                pc.equal(rows.column("partition"), stretch.partition),
                pc.equal(rows.column("topic_id"), stretch.topic_id),
            ),
        )
        found = rows.column("offset").filter(late)
        if len(found):
            return int(pc.min(found).as_py())
    return otherwise


def _file(lake: Lake, row: Mapping[str, Any]) -> _File:
    return _File(
        str(lake.path / row["path"]),
        row["partition.topic"],
        (row["min.topic_id"], row["max.topic_id"]),
        (row["min.partition"], row["max.partition"]),
        (row["min.offset"], row["max.offset"]),
    )
