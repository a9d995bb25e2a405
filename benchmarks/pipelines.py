"""The pipelines that are built in, in records per second, beside a plain read of the same topic.

    python -m benchmarks.pipelines [--records 1000000] [--master 'local[2]']

Each job does everything once over the same topic, after a warm-up over a small one. Brokers of one
node run in processes of their own, on a disk in memory where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Final

from benchmarks.spark import broker

from angarium import SyncClient
from angarium.pipelines.analytics import Analytics, analyse
from angarium.pipelines.dead_letters import causes, letters
from angarium.pipelines.expectations import quality_in
from angarium.pipelines.jobs import Mirror
from angarium.pipelines.mirror import mirror
from angarium.pipelines.quality import check, quality
from angarium.pipelines.replay import Replay, replay
from angarium.spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

BATCH: Final = 10_000
WARM_UP: Final = 20_000


def main(arguments: list[str]) -> int:
    """Measure every job, and print a table and a JSON document."""
    parser = argparse.ArgumentParser(description="Measure the pipelines that are built in.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args(arguments)
    figures: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        servers, _ = stack.enter_context(broker())
        other, _ = stack.enter_context(broker())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        client = stack.enter_context(SyncClient(servers))
        spark = spark_session(options.master)
        for name, records in (("warm-up", WARM_UP), ("bench", options.records)):
            fill(client, name, records)
            jobs = jobs_over(spark, name, servers=servers, other=other, folder=f"{folder}/{name}")
            for job, work in jobs.items():
                began = time.monotonic()
                work()
                figures[job] = records / (time.monotonic() - began)
                if name == "bench":
                    print(f"{job:<44}{figures[job]:>14,.0f} records/s", flush=True)
        spark.stop()
    print(json.dumps(figures))
    return 0


def jobs_over(
    spark: SparkSession, topic: str, *, servers: str, other: str, folder: str
) -> dict[str, Callable[[], object]]:
    """Return what is measured, by its name."""
    options = {"servers": servers, "subscribe": topic}
    table = {
        "startingOffsets": "earliest",
        "dead_letter_topic": f"{topic}-dead",
        "topic": {
            topic: {
                "schema": "n LONG, text STRING",
                "not_null": ["n"],
                "range": {"n": {"min": 10}},
            }
        },
    }
    wanted = quality_in(table)
    return {
        "plain read, to noop": lambda: (
            spark.read.format("angarium")
            .options(**options)
            .load()
            .write.format("noop")
            .mode("overwrite")
            .save()
        ),
        "replay, topic to topic": lambda: replay(
            spark, Replay(options=options, into=f"{topic}-again")
        ),
        "mirror, to another cluster": lambda: mirror(
            spark, Mirror(to=other, options=options), checkpoint=f"{folder}-mirror", once=True
        ).awaitTermination(),
        "analytics, windows of 1 s": lambda: analyse(
            spark, Analytics(options=options, window="1 second")
        ),
        "quality, a report (JSON, 3 expectations)": lambda: check(spark, wanted, servers=servers),
        "quality, sorting as a stream": lambda: quality(
            spark,
            wanted,
            checkpoint=f"{folder}-quality",
            name=f"quality-{topic}",
            servers=servers,
            once=True,
        ).awaitTermination(),
        "dead letters, by cause": lambda: causes(
            letters(spark, options={"servers": servers}, topic=topic)
        ).collect(),
    }


def fill(client: SyncClient, topic: str, records: int) -> None:
    """Publish records of about 100 bytes that could be orders as well as dead letters."""
    client.create_topic(topic, partitions=2)
    told = [("angarium-dlq-topic", b"orders"), ("angarium-dlq-reason", b"took 30 s")]
    text = "x" * 60
    for start in range(0, records, BATCH):
        numbers = range(start, min(start + BATCH, records))
        values = [b'{"n": %d, "text": "%s"}' % (number, text.encode()) for number in numbers]
        client.publish_batch(
            topic,
            values,
            keys=[b"%d" % (number % 1000) for number in numbers],
            headers=[told] * len(values),
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
