"""The sink: everything once, whatever is retried, repeated, restarted or only thought dead."""

from __future__ import annotations

import re
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.versions import HAS_LIMITS, per_trigger, stream_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from angarium import SyncClient


def values(client: SyncClient, topic: str) -> Counter[bytes | None]:
    return Counter(record.value for record in client.read(topic))


def numbers(spark: SparkSession, count: int, parts: int = 4) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("string(id) AS value", "string(id) AS key")


def test_a_dataframe_is_written_once(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(3)
    numbers(spark, 20_000).write.format("angarium").option("servers", servers).mode("append").save(
        topic
    )
    found = values(client, topic)
    assert found == Counter(str(number).encode() for number in range(20_000))
    # Keys are where other producers would have put them.
    receipt = client.publish(topic, b"after", key=b"77")
    records = client.fetch(topic, receipt.partition, 0, records_max=20_000)
    assert any(record.key == b"77" for record in records[:-1])


def test_a_write_with_an_id_is_done_once_however_often_it_is_run(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    from pyspark.errors import PySparkException

    topic, other = new_topic(3), new_topic(1)

    def write(count: int, to: str = topic, tasks: int = 2, **options: str) -> None:
        rows = numbers(spark, count, tasks).drop("key").write.format("angarium")
        rows.options(servers=servers, topic=to, **options).mode("append").save()

    write(100, writeId="nightly")
    # Rows without a key go where their task sends them: with more tasks to more partitions.
    write(100, tasks=3, writeId="nightly")
    assert values(client, topic).total() == 100
    write(7, other, writeId="nightly")
    assert values(client, other).total() == 7
    write(10, writeId="nightly", writeVersion="1")
    write(10, writeId="nightly", writeVersion="1")
    assert values(client, topic).total() == 110
    # Other rows under an id that was used are refused, not passed over; and so is a lower version.
    with pytest.raises(
        PySparkException, match="something else was written before: that was 10 row"
    ):
        write(11, writeId="nightly", writeVersion="1")
    with pytest.raises(
        PySparkException, match="version 0 of writeId nightly comes after version 1"
    ):
        write(100, writeId="nightly")
    write(12, writeId="nightly", writeVersion="1", checkRepeats="false")
    assert values(client, topic).total() == 110
    write(5)
    write(5)
    assert values(client, topic).total() == 120


def test_a_failed_write_leaves_nothing(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    from pyspark.errors import PySparkException

    topic = new_topic(1)
    bad = spark.range(0, 1000, 1, 2).selectExpr(
        "string(id) AS value", "int(if(id = 999, 7, 0)) AS partition"
    )
    with pytest.raises(PySparkException, match="has partitions 0 to 0, and a row wants 7"):
        bad.write.format("angarium").options(servers=servers, topic=topic).mode("append").save()
    assert values(client, topic).total() == 0


def test_attempts_that_failed_half_way_are_not_seen(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)

    def flaky(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 0 and context.attemptNumber() < 2:
            raise RuntimeError("the first two attempts fail, after all rows are staged")

    rows = numbers(spark, 30_000, 2)
    rows.mapInArrow(flaky, rows.schema).write.format("angarium").options(
        servers=servers, topic=topic
    ).mode("append").save()
    assert values(client, topic) == Counter(str(number).encode() for number in range(30_000))


@pytest.fixture
def copy(spark: SparkSession, servers: str, checkpoint: str) -> Callable[..., list[dict[str, Any]]]:
    """Copies a topic to another one, as far as there is anything."""

    def copied(source: str, sink: str, **options: str) -> list[dict[str, Any]]:
        query = (
            spark.readStream.format("angarium")
            .options(**{"startingOffsets": "earliest", **options})
            .options(servers=servers, subscribe=source)
            .load()
            .selectExpr("key", "value")
            .writeStream.format("angarium")
            .options(servers=servers, topic=sink, checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [dict(one) for one in query.recentProgress]

    return copied


@stream_sink
def test_a_stream_copies_every_record_once_across_restarts_and_lost_commits(
    client: SyncClient,
    copy: Callable[..., list[dict[str, Any]]],
    checkpoint: str,
    new_topic: Callable[[int], str],
) -> None:
    source, sink = new_topic(2), new_topic(2)
    payload = [b"%d" % number for number in range(3_000)]
    client.publish_batch(source, payload[:2000], keys=payload[:2000])
    copy(source, sink, **per_trigger(700))
    assert values(client, sink) == Counter(payload[:2000])
    # The driver died between the sink's commit and Spark's own: the batch comes again.
    commits = Path(checkpoint) / "commits"
    last = max(int(entry.name) for entry in commits.iterdir() if entry.name.isdigit())
    (commits / str(last)).unlink()
    client.publish_batch(source, payload[2000:], keys=payload[2000:])
    for _ in range(1 if HAS_LIMITS else 2):  # before PySpark 4.2 each is a single batch
        copy(source, sink)
    assert values(client, sink) == Counter(payload)


@stream_sink
def test_a_checkpoint_restored_from_a_backup_loses_nothing_silently(
    client: SyncClient,
    copy: Callable[..., list[dict[str, Any]]],
    checkpoint: str,
    new_topic: Callable[[int], str],
) -> None:
    from pyspark.errors import PySparkException

    source, sink = new_topic(1), new_topic(1)
    client.publish(source, b"a")
    copy(source, sink)
    backup = f"{checkpoint}-backup"
    shutil.copytree(checkpoint, backup)
    client.publish(source, b"b")
    copy(source, sink)
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)
    client.publish(source, b"c")
    # Its next batch has the number of the one that brought b, and is of b and c.
    with pytest.raises(PySparkException, match="written before, of something else"):
        copy(source, sink)
    with pytest.raises(PySparkException, match="written before, of something else") as refusal:
        copy(source, sink)  # to try again does not help
    assert values(client, sink) == Counter([b"a", b"b"])
    # The refusal says how to go on.
    told = re.search(r"startingOffsets=(\{.*?\}\})", str(refusal.value))
    assert told is not None
    shutil.rmtree(checkpoint)
    copy(source, sink, startingOffsets=told[1])
    assert values(client, sink) == Counter([b"a", b"b", b"c"])


def test_a_topic_that_is_not_there_is_made_only_if_that_is_said(
    spark: SparkSession, client: SyncClient, servers: str, names: Iterator[str]
) -> None:
    from pyspark.errors import PySparkException

    made = next(names)
    rows = numbers(spark, 3, 1).write.format("angarium").mode("append")
    with pytest.raises(PySparkException, match=f"there is no topic {made}"):
        rows.options(servers=servers, topic=made).save()
    by_column = numbers(spark, 3, 1).selectExpr("value", f"'{made}' AS topic").write
    with pytest.raises(PySparkException, match=f"there is no topic {made}"):
        by_column.format("angarium").mode("append").option("servers", servers).save()
    assert made not in {info.name for info in client.list_topics()}
    rows.options(servers=servers, topic=made, createTopic="true").save()
    assert values(client, made).total() == 3


@stream_sink
def test_a_run_that_is_no_longer_the_newest_is_refused(servers: str, client: SyncClient) -> None:
    from angarium.errors import ProducerFenced
    from angarium.spark.link import link_to
    from angarium.spark.runs import Runs, batch_write, fence

    topic = f"fenced-{uuid.uuid4().hex}"
    client.create_topic(topic)
    link = link_to((servers,))
    query = uuid.uuid4().hex

    def staged(epoch: int, batch: int, value: str) -> Any:
        write = batch_write(link, query, epoch, batch)
        stage = write.stage(uuid.uuid4().hex)
        link.call(stage.publish(topic, value))
        return write, link.call(stage.close())

    old = Runs(link).epoch(query, "first run")
    write, ticket = staged(old, 0, "zero")
    assert not link.call(write.commit([ticket])).repeated
    write, ticket = staged(old, 1, "one, as the old run sees it")
    # Another driver takes over, and begins with the next batch.
    new = Runs(link).epoch(query, "second run")
    assert new > old
    fence(link, query, new, 1)
    with pytest.raises(ProducerFenced):
        link.call(write.commit([ticket]))
    write, ticket = staged(new, 1, "one")
    assert not link.call(write.commit([ticket])).repeated
    assert link.call(write.commit([ticket])).repeated
    # The old one comes back in a process that remembers nothing: it is still the old one.
    assert Runs(link).epoch(query, "first run") == old
    assert values(client, topic) == Counter([b"zero", b"one"])


def test_spark_tells_tasks_what_the_sink_needs_to_know(
    spark: SparkSession, client: SyncClient, servers: str, checkpoint: str, tmp_path: Path
) -> None:
    from angarium.spark.sink import BATCH_ID, QUERY_ID, RUN_ID

    seen = tmp_path / "seen"
    seen.mkdir()

    def note(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        told = [str(context.getLocalProperty(name)) for name in (QUERY_ID, RUN_ID, BATCH_ID)]
        (seen / str(context.partitionId())).write_text("\n".join(told), encoding="utf-8")
        yield from batches

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    query = (
        rows.mapInArrow(note, rows.schema)
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(once=True)
        .start()
    )
    query.awaitTermination()
    told = next(seen.iterdir()).read_text(encoding="utf-8").split("\n")
    assert told == [str(query.id), str(query.runId), "0"]


def test_a_topic_is_never_overwritten(
    spark: SparkSession, servers: str, new_topic: Callable[[int], str]
) -> None:
    from pyspark.errors import PySparkException

    rows = numbers(spark, 1).write.format("angarium").option("servers", servers)
    with pytest.raises(PySparkException, match="never overwritten"):
        rows.mode("overwrite").save(new_topic(1))
