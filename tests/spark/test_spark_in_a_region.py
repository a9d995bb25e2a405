"""Spark's option `region`: rows are written where that region's partitions live, and read again.

Real processes in two regions. The topic has a partition in each, and a reader of the other one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.testing.cluster import ProcessCluster, eventually
from angarium.testing.cluster.wan import WanNetwork

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

REGIONS = ("eu", "us")
HOMED = TopicConfig(placement="homed", regions=REGIONS, readers=("*",), replication=1)
ROWS = 40
LARGE = 4_000
"""Records of 1,000 bytes: more than nodes say to each other meanwhile."""


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


class SparkIn(WanNetwork):
    """Regions apart, and whoever is no node, as Spark's processes, is in the first of them."""

    def region_of(self, node: int) -> str:
        return super().region_of(node) or self.regions[0]


def test_what_spark_reads_in_its_region_does_not_cross_to_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    async def scenario() -> None:
        network = SparkIn(REGIONS, one_way_s=0.01)
        async with ProcessCluster(tmp_path, nodes=2, network=network) as cluster:
            where = {network.region_of(node): cluster.nodes[node] for node in cluster.ids}
            far = TopicConfig(placement="homed", regions=("us",), readers=("*",), replication=1)
            await cluster.create_topic("far", partitions=1, config=far)
            async with Client(where["us"].address) as client:
                await client.publish_batch("far", [b"x" * 1_000] * LARGE)

            near = next(node for node in cluster.ids if network.region_of(node) == "eu")

            async def is_copied() -> bool:
                seen = (await cluster.contact(near).describe("far")).partitions[0]
                return near in seen.readers and seen.end_offset == LARGE

            await eventually(is_copied, within_s=120.0, what="eu has a copy of everything")
            servers = ",".join(node.address for node in cluster.nodes.values())
            crossed = {}
            for region in REGIONS:
                before = network.crossed_bytes("eu")
                assert await asyncio.to_thread(_count, spark, servers, region) == LARGE
                crossed[region] = network.crossed_bytes("eu") - before
            # What nodes say to each other crosses anyway.
            assert crossed["eu"] < LARGE * 1_000 / 4
            assert crossed["us"] > LARGE * 1_000

    asyncio.run(scenario())


def _count(spark: SparkSession, servers: str, region: str) -> int:
    options = {"servers": servers, "region": region, "subscribe": "far"}
    rows: Any = spark.read.format("angarium").options(**options).load()
    return int(rows.selectExpr("sum(length(value)) AS total").first().total) // 1_000
