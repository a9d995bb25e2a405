"""An archive without its topic: where it begins and ends, and which files have what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from angarium.api import Start, StartAt
from angarium.errors import InvalidArgument, NotFound
from angarium.pipelines.replay.lake import LakeCluster
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.lake import ArchivedFile, Lake, LakeForm, Stretch
from angarium.spark.options import read_options
from angarium.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from pathlib import Path

NOON = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()) * 1_000_000
DAY = 86_400_000_000


def add(lake: Lake, stretch: Stretch, first: int, stop: int, *, since: int, step: int = 1) -> None:
    """Archive offsets of a partition; each record is a second younger than the one before it."""
    offsets = list(range(first, stop, step))
    times = [since + 1_000_000 * at for at in range(len(offsets))]
    day = datetime.fromtimestamp(since / 1e6, UTC).date().isoformat()
    path = (
        f"topic={stretch.topic}/date={day}/{stretch.topic_id}-{stretch.partition}-{first}.parquet"
    )
    count = len(offsets)
    columns = {
        "key": pa.nulls(count, pa.binary()),
        "value": pa.array([b"x"] * count, pa.binary()),
        "partition": pa.array([stretch.partition] * count, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
        "headers": pa.nulls(count, pa.map_(pa.string(), pa.binary())),
        "producer_timestamp": pa.nulls(count, pa.timestamp("us", tz="UTC")),
        "topic_id": pa.array([stretch.topic_id] * count, pa.int64()),
    }
    target = lake.path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), target)
    file = ArchivedFile(
        path=path,
        bytes=target.stat().st_size,
        records=count,
        stretch=stretch,
        day=day,
        first=first,
        last=offsets[-1],
    )
    lake.add([file], {stretch: stop}, since=lake.archived_to([stretch]))


@pytest.fixture(params=[LakeForm.DELTA, LakeForm.PARQUET])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """An archive of a topic that was made twice, in the days before and after midnight."""
    if request.param is LakeForm.DELTA:
        pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")
    made = Lake(str(tmp_path / "lake"), request.param)
    made.create()
    add(made, Stretch("orders", 3, 0), 0, 90, since=NOON - 9 * DAY)
    add(made, Stretch("orders", 7, 0), 10, 30, since=NOON - DAY)
    add(made, Stretch("orders", 7, 0), 30, 50, since=NOON)
    add(made, Stretch("orders", 7, 1), 0, 40, since=NOON, step=2)
    add(made, Stretch("other", 8, 0), 0, 5, since=NOON)
    return made


def offsets(cluster: LakeCluster, place: StartAt, value: int = 0) -> list[int]:
    return cluster.offsets([("orders", number, Start(place, value)) for number in (0, 1)])


def test_the_newest_topic_of_a_name_begins_and_ends_where_its_files_do(lake: Lake) -> None:
    cluster = LakeCluster(str(lake.path), "orders")
    assert cluster.topic_id == 7
    assert [one.number for one in cluster.topics()["orders"].partitions] == [0, 1]
    assert offsets(cluster, StartAt.EARLIEST) == [10, 0]
    assert offsets(cluster, StartAt.LATEST) == [50, 39]
    assert offsets(cluster, StartAt.TIMESTAMP, NOON - 2 * DAY) == [10, 0]
    assert offsets(cluster, StartAt.TIMESTAMP, NOON + 5_000_000) == [35, 10]
    assert offsets(cluster, StartAt.TIMESTAMP, NOON + DAY) == [50, 39]
    assert cluster.record_bytes("orders", 0, 12)
    with pytest.raises(InvalidArgument, match="knows nothing of the group g"):
        cluster.group_floors("g")
    with pytest.raises(NotFound, match="has nothing of a topic gone"):
        LakeCluster(str(lake.path), "gone")


def test_ranges_are_planned_as_for_a_topic(lake: Lake) -> None:
    cluster = LakeCluster(str(lake.path), "orders")
    given = {"servers": "x:1", "subscribe": "orders", "startingTimestamp": str(NOON // 1000 + 5000)}
    assert batch_ranges(read_options(given, is_stream=False), cluster) == [
        OffsetRange("orders", 0, 35, 50, 7),
        OffsetRange("orders", 1, 10, 39, 7),
    ]


def test_files_are_found_by_what_is_in_them_also_when_they_were_joined(lake: Lake) -> None:
    def found(partition: int, start: int, stop: int) -> int:
        cluster = LakeCluster(str(lake.path), "orders")
        return len(cluster.files(OffsetRange("orders", partition, start, stop, 7)))

    assert [found(0, 0, 100), found(0, 10, 30), found(1, 0, 9), found(1, 40, 50)] == [2, 1, 1, 0]
    lake.compact()
    cluster = LakeCluster(str(lake.path), "orders")
    assert offsets(cluster, StartAt.EARLIEST) == [10, 0]
    assert offsets(cluster, StartAt.LATEST) == [50, 39]
    assert (found(1, 0, 9), found(1, 40, 50)) == (1, 0)
