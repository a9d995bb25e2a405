"""Batch reads through Spark: rows, columns, ranges and refusals."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from angarium import SyncClient


@pytest.fixture
def read(spark: SparkSession, servers: str) -> Callable[..., DataFrame]:
    """Reads topics with the given options."""

    def loaded(schema: str | None = None, **options: str) -> DataFrame:
        reader = spark.read.format("angarium").options(servers=servers, **options)
        return (reader.schema(schema) if schema else reader).load()

    return loaded


def test_a_topic_is_a_table(
    client: SyncClient, read: Callable[..., DataFrame], new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    for partition in range(2):
        values = [f"{partition}-{number}".encode() for number in range(30_000)]
        client.publish_batch(topic, values, keys=values, partition=partition)
    rows = read(subscribe=topic)
    assert rows.columns == ["key", "value", "topic", "partition", "offset", "timestamp"]
    summary = rows.selectExpr(
        "count(*)",
        "count(distinct partition, offset)",
        "count(distinct topic)",
        "sum(if(string(value) = concat(partition, '-', offset), 0, 1))",
        "sum(if(key = value, 0, 1))",
        "max(offset)",
    ).first()
    assert tuple(summary or ()) == (60_000, 60_000, 1, 0, 0, 29_999)


def test_a_record_arrives_with_all_it_has(
    client: SyncClient, read: Callable[..., DataFrame], new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish(topic, None, key=b"k", headers={"trace": b"\x00\x01"})
    client.publish(topic, b"")
    before, bare = read(subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    assert (bytes(before.key), before.value, before.offset) == (b"k", None, 0)
    assert {name: bytes(value) for name, value in before.headers.items()} == {"trace": b"\x00\x01"}
    assert (bare.key, bytes(bare.value), bare.headers) == (None, b"", {})
    assert abs(before.timestamp.timestamp() - time.time()) < 3600


def test_a_schema_picks_columns_and_reads_text(
    client: SyncClient, read: Callable[..., DataFrame], new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish(topic, "grün")
    rows = read("offset long, value string", subscribe=topic).collect()
    assert [tuple(row) for row in rows] == [(0, "grün")]


def test_tasks_are_as_many_as_asked_for(
    client: SyncClient, read: Callable[..., DataFrame], new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"x"] * 1000)
    assert read(subscribe=topic).rdd.getNumPartitions() == 1
    split = read(subscribe=topic, minPartitions="4")
    assert split.rdd.getNumPartitions() == 4
    assert split.selectExpr("count(distinct offset)").first()[0] == 1000  # type: ignore[index]
    assert read(subscribe=topic, maxRecordsPerPartition="100").rdd.getNumPartitions() == 10


def test_sql_reads_a_topic(
    spark: SparkSession, servers: str, client: SyncClient, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"1", b"2"])
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW numbers USING angarium "
        f"OPTIONS (servers '{servers}', subscribe '{topic}')"
    )
    total = spark.sql("SELECT sum(int(string(value))) AS total FROM numbers").first()
    assert total is not None
    assert total.total == 3


def test_conditions_decide_what_is_read_at_all(
    client: SyncClient, read: Callable[..., DataFrame], new_topic: Callable[[int], str]
) -> None:
    from angarium.spark.filtering import HAS_FILTERS

    topic = new_topic(3)
    for partition in range(3):
        client.publish_batch(topic, [b"%d" % number for number in range(100)], partition=partition)
    if not HAS_FILTERS:
        from pyspark.errors import PySparkException

        with pytest.raises(PySparkException, match=r"pushFilters needs PySpark 4\.1 or newer"):
            read(subscribe=topic, pushFilters="true").count()
        return
    rows = read(subscribe=topic, pushFilters="true", minPartitions="3")
    assert rows.rdd.getNumPartitions() == 3
    few = rows.where("partition = 1 AND offset >= 10 AND offset < 13 AND string(value) <> '11'")
    assert few.rdd.getNumPartitions() <= 3  # three records, of one partition
    assert sorted(row.offset for row in few.collect()) == [10, 12]
    old = rows.where("timestamp < timestamp '2020-01-01'")
    assert old.collect() == []
    assert old.rdd.getNumPartitions() == 1, "Spark makes one task of nothing"
    assert rows.where("timestamp > now() - INTERVAL 1 HOUR").count() == 300
    assert rows.where("topic = 'another'").count() == 0


def test_a_session_has_the_settings_that_it_should_have(spark: SparkSession) -> None:
    from angarium.spark.session import checkpoint_manager
    from angarium.spark.settings import session_settings

    wanted = session_settings("local[2]", checkpoint_manager=checkpoint_manager(), cores=1)
    own = {"spark.driver.memory"}
    for setting in wanted:
        print(f"{setting.name} = {setting.value}: {setting.why}")
        if setting.name not in own:
            assert spark.conf.get(setting.name) == setting.value
