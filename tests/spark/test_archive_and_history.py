"""The archive: every record once in the table; and history and present as one table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.versions import per_trigger

from angarium import TopicConfig
from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from angarium import SyncClient

pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")


def publish(client: SyncClient, topic: str, start: int, stop: int) -> None:
    values = [b"%d" % number for number in range(start, stop)]
    client.publish_batch(topic, values, keys=values, headers=[[("n", one)] for one in values])


def archive_once(spark: SparkSession, path: Path, checkpoint: Path, **options: str) -> None:
    from angarium.pipelines.archive import archive

    query = archive(spark, str(path), checkpoint=str(checkpoint), options=options, once=True)
    query.awaitTermination()


def contents(path: Path) -> tuple[int, int, int]:
    """Return what another engine finds: rows, distinct places, and rows that are not as written."""
    import duckdb

    from angarium.spark.lake import Lake

    answer = duckdb.execute(
        """SELECT count(*), count(DISTINCT (partition, "offset")),
                  count(*) FILTER (key <> value OR headers['n'] <> value OR value IS NULL)
           FROM read_parquet(?, hive_partitioning = true)""",
        [Lake(str(path)).files()],
    ).fetchone()
    assert answer is not None
    rows, places, wrong = answer
    return rows, places, wrong


def trim(client: SyncClient, topic: str) -> None:
    """Have everything that a topic holds now removed by retention."""
    client.alter_topic(topic, config=TopicConfig(retention_ms=1))
    deadline = time.monotonic() + 60
    while True:
        parts = client.describe_topic(topic).partitions
        if all(one.start_offset == one.end_offset for one in parts):
            break
        assert time.monotonic() < deadline, "retention did not come"
        time.sleep(0.2)
    client.alter_topic(topic, config=TopicConfig())


def test_every_record_is_archived_once_whatever_is_repeated(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from angarium.spark.lake import Lake

    topic = new_topic(2)
    lake = tmp_path / "lake"
    publish(client, topic, 0, 3000)
    options = {"servers": servers, "subscribe": topic}
    archive_once(spark, lake, tmp_path / "one", **per_trigger(2000), **options)
    assert contents(lake) == (3000, 3000, 0)
    # Another query that knows nothing of the first finds what is there already.
    publish(client, topic, 3000, 3500)
    archive_once(spark, lake, tmp_path / "two", **options)
    assert contents(lake) == (3500, 3500, 0)
    before = len(Lake(str(lake)).files())
    Lake(str(lake)).compact()
    assert len(Lake(str(lake)).files()) < before
    assert contents(lake) == (3500, 3500, 0)
    # The first one goes on: its offsets are older than the table's, and nothing comes twice.
    archive_once(spark, lake, tmp_path / "one", **options)
    assert contents(lake) == (3500, 3500, 0)
    # Another archive with its checkpoint would begin behind all that, and nobody would notice.
    with pytest.raises(PreconditionFailed, match=r"is for the archive .*/lake, not for .*/other"):
        archive_once(spark, tmp_path / "other", tmp_path / "one", **options)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("form", ["delta", "parquet", "iceberg"])
def test_every_form_of_an_archive_is_read_by_every_engine(
    form: str,
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    needs = {"delta": "deltalake", "iceberg": "pyiceberg"}
    if form in needs:
        pytest.importorskip(needs[form], reason="an extra is not installed")
    from angarium.pipelines.archive import archive
    from angarium.spark.lake import Lake, LakeForm

    topic = new_topic(2)
    path = tmp_path / "lake"
    options = {"servers": servers, "subscribe": topic}
    for checkpoint, stop in (("one", 1000), ("two", 1500), ("one", 1500)):
        if stop > sum(int(one.end_offset or 0) for one in client.describe_topic(topic).partitions):
            publish(client, topic, stop - 500 if stop > 1000 else 0, stop)
        query = archive(
            spark,
            str(path),
            checkpoint=str(tmp_path / checkpoint),
            options=options,
            once=True,
            form=LakeForm(form),
        )
        query.awaitTermination()
    lake = Lake(str(path))
    assert lake.form is LakeForm(form)
    for _ in range(2):
        assert contents(path) == (1500, 1500, 0)
        assert by_polars(lake) == sorted(range(1500))
        native = spark.read.parquet(*lake.files()).selectExpr("int(string(value)) AS n").collect()
        assert sorted(row.n for row in native) == list(range(1500))
        lake.compact()
    assert len(lake.files()) == 1
    publish(client, topic, 1500, 1600)
    rows = spark.read.format("angarium").options(**options, archive=str(path)).load()
    found = rows.selectExpr("int(string(value)) AS n").collect()
    assert sorted(row.n for row in found) == list(range(1600))


def by_polars(lake: Any) -> list[int]:
    """Return what Polars finds, by the table where it knows the form, else by the files."""
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    match lake.form.value:
        case "delta":
            rows = polars.read_delta(str(lake.path))
        case "iceberg":
            rows = polars.scan_iceberg(lake.table.table).collect()
        case _:
            rows = polars.read_parquet(f"{lake.path}/topic=*/date=*/*.parquet")
    return sorted(int(value) for value in rows["value"].to_list())


def test_history_and_present_are_one_table_without_a_seam(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(2)
    lake = tmp_path / "lake"
    publish(client, topic, 0, 2000)
    archive_once(spark, lake, tmp_path / "checkpoint", servers=servers, subscribe=topic)
    trim(client, topic)
    publish(client, topic, 2000, 2600)
    options = {"servers": servers, "subscribe": topic, "archive": str(lake)}
    rows = spark.read.format("angarium").options(**options).load()
    found = rows.selectExpr("int(string(value)) AS n", "partition", "offset").collect()
    assert sorted(row.n for row in found) == list(range(2600))
    assert len({(row.partition, row.offset) for row in found}) == 2600
    since = spark.read.format("angarium").options(**options, startingTimestamp="1").load()
    assert since.count() == 2600

    query = (
        spark.readStream.format("angarium")
        .options(**options, startingOffsets="earliest", **per_trigger(900))
        .load()
        .selectExpr("int(string(value)) AS n")
        .writeStream.format("memory")
        .queryName("history_and_present")
        .option("checkpointLocation", str(tmp_path / "stream"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(row.n for row in spark.table("history_and_present").collect()) == list(
        range(2600)
    )


def test_records_trimmed_before_they_were_read_fail_a_query(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    from pyspark.errors import PySparkException

    topic = new_topic(1)
    publish(client, topic, 0, 100)
    trim(client, topic)
    publish(client, topic, 100, 110)

    def read(**options: str) -> list[int]:
        rows = spark.read.format("angarium").options(
            servers=servers,
            subscribe=topic,
            startingOffsets=f'{{"{topic}":{{"0":50}}}}',
            **options,
        )
        return sorted(row.offset for row in rows.load().select("offset").collect())

    with pytest.raises(PySparkException, match="begins at 100, not at 50"):
        read()
    assert read(failOnDataLoss="false") == list(range(100, 110))
