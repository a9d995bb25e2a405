"""An archive on its own, without the topics it was made of: they may be gone, or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from angarium.api import PartitionInfo, Start, StartAt, TopicConfig, TopicInfo
from angarium.errors import AngariumError, InvalidArgument, NotFound
from angarium.ids import Micros, TopicId
from angarium.pipelines.record_schema import RECORD
from angarium.spark.history import ArchivedRange, archived_rows
from angarium.spark.lake import Lake
from angarium.spark.ranges import OffsetRange
from angarium.spark.rows import COLUMNS, RowShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class _Span:
    """What one file has of one partition."""

    path: str
    partition: int
    first: int
    last: int
    day: date | None


class LakeCluster:
    """One topic as its archive knows it. It is a `Cluster` for planning.

    Of topics of one name, made one after the other, the newest is meant.
    """

    def __init__(self, path: str, topic: str) -> None:
        self._topic = topic
        lake = Lake(path)
        rows = [row for row in lake.listed() if row["partition.topic"] == topic]
        if not rows:
            raise NotFound(f"the archive in {path} has nothing of a topic {topic}")
        self.topic_id = max(row["max.topic_id"] for row in rows)
        self._spans = [
            span
            for row in rows
            if row["max.topic_id"] == self.topic_id
            for span in _spans(str(lake.path / row["path"]), row, self.topic_id)
        ]

    @property
    def partitions(self) -> int:
        """How many partitions the topic had, as far as the archive has anything of them."""
        return 1 + max(span.partition for span in self._spans)

    def topics(self) -> Mapping[str, TopicInfo]:
        """Return the topic."""
        there = {span.partition for span in self._spans}
        partitions = tuple(PartitionInfo(number=one, replicas=()) for one in sorted(there))
        info = TopicInfo(
            id=TopicId(self.topic_id),
            name=self._topic,
            config=TopicConfig(),
            partitions=partitions,
            created_at=Micros(0),
        )
        return {self._topic: info}

    def offsets(self, wanted: Sequence[tuple[str, int, Start]]) -> list[int]:
        """Return where starts lie in the archive."""
        return [self._offset(partition, start) for _, partition, start in wanted]

    def offsets_within(
        self, wanted: Sequence[tuple[str, int, Start]], patience_s: Sequence[float]
    ) -> list[int | AngariumError]:
        """Return the same: an archive answers always."""
        del patience_s
        return [*self.offsets(wanted)]

    def group_floors(self, group: str) -> Mapping[tuple[str, int], int]:
        """Refuse: groups are the broker's."""
        raise InvalidArgument(f"an archive knows nothing of the group {group}")

    def report(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Refuse: groups are the broker's."""
        raise InvalidArgument(f"an archive knows nothing of the group {group}: {len(offsets)}")

    def record_bytes(self, topic: str, partition: int, offset: int) -> float | None:  # noqa: ARG002
        """Return the mean size of the records in the file that has `offset`, unpacked."""
        for span in self._of(partition):
            if span.first <= offset <= span.last:
                about = pq.read_metadata(span.path)
                groups = (about.row_group(at) for at in range(about.num_row_groups))
                total = sum(int(group.total_byte_size) for group in groups)
                return total / max(1, int(about.num_rows))
        return None

    def files(self, wanted: OffsetRange) -> list[str]:
        """Return the files that have records of a range, in the order of their offsets."""
        return [
            span.path
            for span in self._of(wanted.partition)
            if span.first < wanted.stop and span.last >= wanted.start
        ]

    def _of(self, partition: int) -> list[_Span]:
        mine = [span for span in self._spans if span.partition == partition]
        return sorted(mine, key=lambda span: span.first)

    def _offset(self, partition: int, start: Start) -> int:
        spans = self._of(partition)
        match start.at:
            case StartAt.OFFSET:
                return start.value
            case StartAt.EARLIEST:
                return spans[0].first
            case StartAt.TIMESTAMP:
                return self._since(spans, partition, start.value)
        return 1 + spans[-1].last

    def _since(self, spans: list[_Span], partition: int, micros: int) -> int:
        """Return the first offset appended at a time or later; times ascend with offsets."""
        day = date.fromordinal(719_163 + micros // 86_400_000_000)
        for span in spans:
            if span.day is not None and span.day < day:
                continue
            rows = pq.read_table(
                span.path,
                columns=["offset", "timestamp", "partition", "topic_id"],
                partitioning=None,
            )
            late = pc.greater_equal(rows.column("timestamp").cast(pa.int64()), micros)
            meant = pc.and_(late, _is_of(rows, partition, self.topic_id))
            found = rows.column("offset").filter(meant)
            if len(found):
                return int(pc.min(found).as_py())
        return 1 + spans[-1].last


def lake_rows(
    spark: SparkSession, cluster: LakeCluster, ranges: Sequence[OffsetRange]
) -> DataFrame:
    """Return the records of ranges, read from the archive's files by Spark's Python workers."""
    wanted = [
        (one.topic, one.partition, one.start, one.stop, one.topic_id, path)
        for one in ranges
        for path in cluster.files(one)
    ]
    # In this order: Spark parts the rows into tasks without mixing them.
    columns = "topic string, partition int, start long, stop long, topic_id long, file string"
    return spark.createDataFrame(wanted, columns).mapInArrow(_records, RECORD)


def _records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    shape = RowShape(list(COLUMNS.items()))
    for batch in batches:
        for one in batch.to_pylist():
            file = one.pop("file")
            yield from archived_rows(shape, ArchivedRange(OffsetRange(**one), file))


def _spans(path: str, row: Mapping[str, Any], topic_id: int) -> list[_Span]:
    """Return what a file has of each partition: as the log says, or, if it is joined of several
    partitions' files, as a look into it says."""
    day = row.get("partition.date")
    if (row["min.partition"], row["min.topic_id"]) == (row["max.partition"], row["max.topic_id"]):
        return [_Span(path, row["min.partition"], row["min.offset"], row["max.offset"], day)]
    rows = pq.read_table(path, columns=["partition", "topic_id", "offset"], partitioning=None)
    rows = rows.filter(pc.equal(rows.column("topic_id"), topic_id))
    found = rows.group_by("partition").aggregate([("offset", "min"), ("offset", "max")])
    return [
        _Span(path, one["partition"], one["offset_min"], one["offset_max"], day)
        for one in found.to_pylist()
    ]


def _is_of(rows: pa.Table, partition: int, topic_id: int) -> pa.ChunkedArray:
    return pc.and_(
        pc.equal(rows.column("partition"), partition),
        pc.equal(rows.column("topic_id"), topic_id),
    )
