"""Structured values through Spark: `SELECT order.amount`, read and written, batch and stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.spark.versions import stream_sink

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from angarium import SyncClient

ORDER = "amount double, lines array<struct<sku string, count int>>, day date"
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


def test_members_of_json_values_are_columns(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    orders = [
        {"amount": 12.5, "lines": [{"sku": "tea", "count": 2}], "day": "2026-11-15"},
        {"amount": 1, "extra": True},
    ]
    client.publish_batch(topic, [json.dumps(one).encode() for one in orders], keys=[b"a", b"b"])
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW sold USING angarium OPTIONS (servers '{servers}', "
        f"subscribe '{topic}', valueFormat 'json', valueSchema '{ORDER}', valueColumn 'order')"
    )
    found = spark.sql(
        "SELECT string(key) AS k, order.amount, order.lines[0].sku, string(order.day) "
        "FROM sold ORDER BY k"
    ).collect()
    assert [tuple(row) for row in found] == [
        ("a", 12.5, "tea", "2026-11-15"),
        ("b", 1.0, None, None),
    ]
    client.publish(topic, b"no JSON at all", key=b"c")
    rows = (
        spark.read.format("angarium")
        .schema("value binary, order struct<amount double>")
        .options(servers=servers, subscribe=topic, valueFormat="json", valueColumn="order")
    )
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="cannot be decoded: Invalid value"):
        rows.load().collect()
    bad = rows.option("badValues", "null").load().where("order IS NULL").collect()
    assert [bytes(row.value) for row in bad] == [b"no JSON at all"]


@stream_sink
def test_a_stream_turns_json_into_avro(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    checkpoint: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    pytest.importorskip("fastavro", reason="the extra angarium[avro] is not installed")
    source, sink = new_topic(1), new_topic(1)
    values = [b'{"customer":"c%d","amount":%d}' % (number, number) for number in range(1000)]
    client.publish_batch(source, values)
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(AVRO), encoding="utf-8")
    query = (
        spark.readStream.format("angarium")
        .options(servers=servers, subscribe=source, startingOffsets="earliest")
        .options(valueFormat="json", valueSchema="customer string, amount double")
        .load()
        .selectExpr(
            "key", "named_struct('customer', value.customer, 'amount', value.amount * 2) AS o"
        )
        .writeStream.format("angarium")
        .options(servers=servers, topic=sink, checkpointLocation=checkpoint)
        .options(valueFormat="avro", valueSchemaFile=str(schema), valueColumn="o")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = (
        spark.read.format("angarium")
        .options(servers=servers, subscribe=sink, valueFormat="avro")
        .options(valueSchemaFile=str(schema), valueColumn="order")
        .load()
    )
    total = rows.selectExpr("sum(order.amount)", "count(order.note)", "max(order.customer)").first()
    assert tuple(total or ()) == (999_000.0, 0, "c999")
