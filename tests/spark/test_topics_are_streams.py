"""Streaming reads: every record once, across limits, restarts and crashes."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.versions import HAS_LIMITS, limits, needs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from angarium import SyncClient

RUNS = 1 if HAS_LIMITS else 2
"""How often a query has to run to read what is there, if a batch was left undone: before PySpark
4.2 a run of what is there now is a single batch."""

_names = count(1)


@pytest.fixture
def run(spark: SparkSession, servers: str, checkpoint: str) -> Callable[..., Any]:
    """Runs a query over what is there; returns each micro-batch's offsets and its progress."""

    def ran(**options: str) -> tuple[list[list[int]], list[dict[str, Any]]]:
        batches: list[list[int]] = []

        def keep(rows: DataFrame, _: int) -> None:
            batches.append(sorted(row.offset for row in rows.select("offset").collect()))

        query: StreamingQuery = (
            spark.readStream.format("angarium")
            .options(servers=servers, **{"startingOffsets": "earliest", **options})
            .load()
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return batches, [dict(one) for one in query.recentProgress]

    return ran


def test_a_query_goes_on_where_it_stopped(
    client: SyncClient, run: Callable[..., Any], new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"x"] * 100)
    first, _ = run(subscribe=topic)
    assert first == [list(range(100))]
    client.publish_batch(topic, [b"x"] * 50)
    second, progress = run(subscribe=topic)
    assert second == [list(range(100, 150))]
    from angarium.pipelines.running import told_offsets

    assert told_offsets(progress[-1]["sources"][0]["endOffset"])[topic] == {"0": 150}


@limits
def test_a_trigger_reads_no_more_than_it_may(
    client: SyncClient, run: Callable[..., Any], new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"x"] * 100)
    batches, _ = run(subscribe=topic, maxOffsetsPerTrigger="40")
    assert [len(one) for one in batches] == [40, 40, 20]
    assert [offset for one in batches for offset in one] == list(range(100))


def test_a_batch_that_is_repeated_reads_the_same_records(
    client: SyncClient, run: Callable[..., Any], checkpoint: str, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"x"] * 100)
    first, _ = run(subscribe=topic)
    # The driver died after the work of batch 0 and before it was written down.
    (Path(checkpoint) / "commits" / "0").unlink()
    client.publish_batch(topic, [b"x"] * 10)
    again = [one for _ in range(RUNS) for one in run(subscribe=topic)[0]]
    assert again == [first[0], list(range(100, 110))]


def test_a_query_from_the_latest_offset_on_is_repeated_from_there(
    spark: SparkSession,
    servers: str,
    client: SyncClient,
    checkpoint: str,
    run: Callable[..., Any],
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"old"] * 10)
    query = (
        spark.readStream.format("angarium")
        .options(servers=servers, subscribe=topic)
        .load()
        .writeStream.format("memory")
        .queryName(f"latest_{next(_names)}")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        query.processAllAvailable()
        client.publish_batch(topic, [b"new"] * 5)
        query.processAllAvailable()
    finally:
        query.stop()
    # Spark's first batch is an empty one here; the records came with the second.
    (Path(checkpoint) / "commits" / "1").unlink()
    client.publish_batch(topic, [b"newer"] * 5)
    batches = [
        one for _ in range(RUNS) for one in run(subscribe=topic, startingOffsets="latest")[0]
    ]
    assert batches == [list(range(10, 15)), list(range(15, 20))]


def test_a_deleted_topic_fails_the_query_unless_told_otherwise(
    client: SyncClient, run: Callable[..., Any], new_topic: Callable[[int], str]
) -> None:
    from pyspark.errors import StreamingQueryException

    kept, gone = new_topic(1), new_topic(1)
    client.publish_batch(kept, [b"x"] * 3)
    client.publish_batch(gone, [b"x"] * 3)
    both = f"{kept},{gone}"
    run(subscribe=both)
    client.delete_topic(gone)
    client.publish_batch(kept, [b"x"] * 3)
    with pytest.raises(StreamingQueryException, match=f"the topic {gone} was deleted"):
        run(subscribe=both)
    batches, _ = run(subscribe=both, failOnDataLoss="false")
    assert batches == [[3, 4, 5]]


def test_limits_are_refused_by_name_before_a_query_starts(run: Callable[..., Any]) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="endingOffsets is not for a stream"):
        run(subscribe="a", endingOffsets="latest")


@needs((4, 2), "the group of a query that has ended")
def test_a_query_appears_among_the_groups_with_its_lag(
    spark: SparkSession,
    servers: str,
    client: SyncClient,
    run: Callable[..., Any],
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"x"] * 10)
    group = f"query-on-{topic}"
    run(subscribe=topic, groupId=group, maxOffsetsPerTrigger="4")
    told = client.describe_group(group)
    assert told.kind.name == "CHECKPOINT"
    assert [(one.floor, one.lag) for one in told.positions] == [(10, 0)]
    client.publish_batch(topic, [b"x"] * 3)
    assert client.describe_group(group).lag == 3
    rows = (
        spark.read.format("angarium")
        .options(servers=servers, subscribe=topic, startingOffsets="committed", groupId=group)
        .load()
    )
    assert sorted(row.offset for row in rows.select("offset").collect()) == [10, 11, 12]
