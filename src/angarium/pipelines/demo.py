"""A first pipeline, in a minute: a topic arrives in a lake table, and SQL answers over it."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import AlreadyExists
from angarium.pipelines.archive import archive
from angarium.pipelines.sql import answer
from angarium.spark.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Row, SparkSession

    from angarium.client import SyncClient

TOPIC: Final = "demo-orders"
ORDERS: Final = 10_000
DISHES: Final = ("tea", "coffee", "cake", "soup")
QUESTION: Final = (
    "SELECT string(value) AS dish, count(*) AS orders, count(DISTINCT key) AS tables "
    "FROM demo_orders GROUP BY 1 ORDER BY orders DESC"
)


def publish_orders(client: SyncClient) -> None:
    """Publish some orders of some tables."""
    # One from the last time will do; the new orders join the old ones.
    with suppress(AlreadyExists):
        client.create_topic(TOPIC, partitions=2)
    dishes = [random.choice(DISHES).encode() for _ in range(ORDERS)]
    tables = [b"table %d" % random.randrange(40) for _ in range(ORDERS)]
    client.publish_batch(TOPIC, dishes, keys=tables)


def demo(
    spark: SparkSession,
    client: SyncClient,
    *,
    servers: str,
    folder: str,
    say: Callable[[str], None],
) -> tuple[list[str], list[Row]]:
    """Publish, archive and ask; return the answer's columns and rows."""
    say(f"publishing {ORDERS:,} records to the topic {TOPIC}")
    publish_orders(client)
    lake = f"{folder}/lake"
    say(f"archiving it into a Delta table in {lake}")
    query = archive(
        spark,
        lake,
        checkpoint=f"{folder}/checkpoint",
        options={"servers": servers, "subscribe": TOPIC},
        once=True,
    )
    query.awaitTermination()
    say(f"there are {len(Lake(lake).files())} files; asking: {QUESTION}")
    options = {"servers": servers, "archive": lake}
    rows = answer(spark, QUESTION, topics=[TOPIC], options=options)
    return rows.columns, rows.collect()
