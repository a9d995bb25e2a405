"""The golden table of batch reads, asked of Spark with a broker behind it: every case of it."""

from __future__ import annotations

import time
from functools import reduce
from typing import TYPE_CHECKING

import pytest
from tests.unit.spark.golden_reads import LOSSES, READS, REFUSALS, Range, at

from angarium import SyncClient, TopicConfig
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

PATIENCE_S = 60.0
A_DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def topics(quick_retention: None) -> Iterator[tuple[str, dict[str, int]]]:
    """A broker with the table's topics and no other; its address, and the table's moments."""
    with BrokerThread() as broker, SyncClient(*broker.addresses) as client:
        client.create_topic("orders", partitions=2, config=TopicConfig(retention_ms=1))
        for name in ("returns", "empty", "angarium-own"):
            client.create_topic(name)
        publish(client, "orders", 1, 0, 5)
        until(lambda: client.describe_topic("orders").partitions[1].start_offset == 5)
        client.alter_topic("orders", config=TopicConfig())
        first = publish(client, "orders", 0, 0, 5)
        # Options count in milliseconds: the two moments must not share one, nor the one between.
        until(lambda: time.time() * 1e6 > first + 10_000)
        second = min(publish(client, "orders", 0, 5, 10), publish(client, "orders", 1, 5, 15))
        publish(client, "returns", 0, 0, 3)
        publish(client, "angarium-own", 0, 0, 7)
        reach(broker.addresses, {("orders", 0): 4})
        moments = {
            "first": first // 1000,
            "between": first // 1000 + 1,
            "second": second // 1000,
            "later": second // 1000 + A_DAY_MS,
        }
        assert moments["between"] < moments["second"]
        yield ",".join(broker.addresses), moments


@pytest.fixture
def read(
    spark: SparkSession, topics: tuple[str, dict[str, int]]
) -> Callable[[dict[str, str]], DataFrame]:
    """Reads what a case of the table says."""
    servers, moments = topics

    def loaded(given: dict[str, str]) -> DataFrame:
        return (
            spark.read.format("angarium")
            .schema("topic string, partition int, offset long, value string")
            .options(servers=servers, **at(given, moments))
            .load()
        )

    return loaded


def test_options_give_rows(read: Callable[[dict[str, str]], DataFrame]) -> None:
    found = answers([read(given) for given, _ in READS])
    for number, (given, ranges) in enumerate(READS):
        assert found[number] == rows(ranges), given


def test_what_cannot_be_read_is_refused(read: Callable[[dict[str, str]], DataFrame]) -> None:
    from pyspark.errors import PySparkException

    for given, _, refusal in REFUSALS:
        with pytest.raises(PySparkException) as refused:
            read(given).collect()
        assert refusal in str(refused.value), given


def test_what_is_gone_is_a_loss_unless_told_otherwise(
    read: Callable[[dict[str, str]], DataFrame],
) -> None:
    from pyspark.errors import PySparkException

    orders = {"subscribe": "orders"}
    for given, loss, _ in LOSSES:
        with pytest.raises(PySparkException) as refused:
            read({**orders, **given}).collect()
        assert loss in str(refused.value), given
    lenient = {**orders, "failOnDataLoss": "false"}
    found = answers([read({**lenient, **given}) for given, _, _ in LOSSES])
    for number, (given, _, ranges) in enumerate(LOSSES):
        assert found[number] == rows(ranges), given


def answers(tables: list[DataFrame]) -> list[list[tuple[str, int, int, str]]]:
    """Return the rows of many tables, asked for in one job: each job of its own costs a second."""
    marked = [one.selectExpr(f"{number} AS case", "*") for number, one in enumerate(tables)]
    found: list[list[tuple[str, int, int, str]]] = [[] for _ in tables]
    for case, *row in reduce(lambda left, right: left.unionAll(right), marked).collect():
        found[case].append(tuple(row))
    return [sorted(one) for one in found]


def rows(ranges: list[Range]) -> list[tuple[str, int, int, str]]:
    return sorted(
        (topic, partition, offset, f"{topic}-{partition}-{offset}")
        for topic, partition, start, stop in ranges
        for offset in range(start, stop)
    )


def publish(client: SyncClient, topic: str, partition: int, start: int, stop: int) -> int:
    """Publish records that say where they are; return when they were appended, in µs."""
    values = [f"{topic}-{partition}-{offset}".encode() for offset in range(start, stop)]
    (told,) = client.publish_batch(topic, values, partition=partition)
    assert told.base_offset == start
    return int(client.fetch(topic, partition, start)[0].append_time)


def reach(addresses: list[str], offsets: dict[tuple[str, int], int]) -> None:
    """Let the group `readers` come so far."""
    from angarium.spark.link import link_to

    link_to(tuple(addresses)).report("readers", offsets)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
