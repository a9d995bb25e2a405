"""Spark's option `region`: rows are written where that region's partitions live, and read again.

Real processes in two regions. The topic has a partition in each, and a reader of the other one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from angarium.api import TopicConfig
from angarium.testing.cluster import ProcessCluster

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

REGIONS = ("eu", "us")
HOMED = TopicConfig(placement="homed", regions=REGIONS, readers=("*",), replication=1)
ROWS = 40


def test_rows_are_written_in_the_region_that_is_said_and_read_from_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with ProcessCluster(tmp_path, nodes=3, regions=("eu", "us", "eu")) as cluster:
            await cluster.create_topic("orders", partitions=2, config=HOMED)
            servers = ",".join(node.address for node in cluster.nodes.values())
            for region in REGIONS:
                await asyncio.to_thread(_write, spark, servers, region)
            found = await asyncio.to_thread(_read, spark, servers, "eu")
            # Each region has a partition; keys or not, what is written there stays there.
            wanted = {
                (at, f"{region}-{number}")
                for at, region in enumerate(REGIONS)
                for number in range(ROWS)
            }
            assert found == wanted

    asyncio.run(scenario())


def _write(spark: SparkSession, servers: str, region: str) -> None:
    rows = [(f"key-{number}", f"{region}-{number}") for number in range(ROWS)]
    frame = spark.createDataFrame(rows, "key string, value string")
    options = {"servers": servers, "topic": "orders", "region": region}
    frame.write.format("angarium").options(**options).mode("append").save()


def _read(spark: SparkSession, servers: str, region: str) -> set[tuple[int, str]]:
    options = {"servers": servers, "region": region, "subscribe": "orders"}
    rows: Any = spark.read.format("angarium").options(**options).load()
    return {(row.partition, bytes(row.value).decode()) for row in rows.collect()}
