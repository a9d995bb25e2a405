"""A partition whose only replica's node is killed: streaming queries go on with the others."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.spark.versions import HAS_LIMITS

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.testing.cluster import ProcessCluster, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 50
"""Records in each partition, each time."""
WITHIN_S = 120.0


def test_a_query_goes_on_without_a_partition_and_takes_it_up_again(
    spark: SparkSession, tmp_path: Path, checkpoint: str
) -> None:
    seen: Counter[tuple[int, str]] = Counter()

    def take(rows: Any, _: int) -> None:
        seen.update((row.partition, bytes(row.value).decode()) for row in rows.collect())

    async def has_come(*wanted: tuple[int, str]) -> None:
        all_ = {(at, f"{word}-{n}") for at, word in wanted for n in range(ROWS)}

        async def is_so() -> bool:
            return all_ <= seen.keys()

        await eventually(is_so, within_s=WITHIN_S, what=f"{wanted} have come")

    async def scenario() -> None:
        async with ProcessCluster(tmp_path / "nodes", nodes=3) as cluster:
            info = await cluster.create_topic(
                "orders", partitions=3, config=TopicConfig(replication=1)
            )
            lost = info.partitions[1].replicas[0]
            others = [one.number for one in info.partitions if one.replicas[0] != lost]
            assert others
            addresses = [node.address for id_, node in cluster.nodes.items() if id_ != lost]
            query = await asyncio.to_thread(_started, spark, ",".join(addresses), take, checkpoint)
            try:
                async with Client(*addresses) as client:
                    for number in range(3):
                        await _publish(client, number, "before")
                    await has_come(*((number, "before") for number in range(3)))

                    cluster.nodes[lost].kill()
                    for round_ in ("without", "still-without"):
                        for number in others:
                            await _publish(client, number, round_)
                        await has_come(*((number, round_) for number in others))
                        assert query.isActive
                    if HAS_LIMITS:
                        await eventually(
                            lambda: _says(query, {"orders"}), within_s=WITHIN_S, what="it says so"
                        )

                    cluster.restart(lost)
                    await cluster.back(lost)
                    for number in range(3):
                        await _publish(client, number, "after")
                    await has_come(*((number, "after") for number in range(3)))
                    if HAS_LIMITS:
                        await eventually(
                            lambda: _says(query, set()), within_s=WITHIN_S, what="it says no more"
                        )
                assert query.exception() is None
            finally:
                await asyncio.to_thread(query.stop)
            wanted = {(number, word) for number in range(3) for word in ("before", "after")}
            wanted |= {(number, word) for number in others for word in ("without", "still-without")}
            assert seen == Counter({(at, f"{w}-{n}"): 1 for at, w in wanted for n in range(ROWS)})

    asyncio.run(scenario())


async def _publish(client: Client, partition: int, word: str) -> None:
    values = [f"{word}-{number}".encode() for number in range(ROWS)]
    await client.publish_batch("orders", values, partition=partition)


async def _says(query: Any, topics: set[str]) -> bool:
    """Tell whether a query's progress names partitions of these topics as silent."""
    progress = query.lastProgress
    told = json.loads(progress["sources"][0]["latestOffset"] or "{}") if progress else {}
    return set(told.get("@silent", {})) == topics


def _started(spark: SparkSession, servers: str, take: Any, checkpoint: str) -> Any:
    options = {"servers": servers, "subscribe": "orders", "startingOffsets": "earliest"}
    return (
        spark.readStream.format("angarium")
        .options(**options)
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", checkpoint)
        .start()
    )
