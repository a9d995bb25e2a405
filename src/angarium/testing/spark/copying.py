"""The driver that chaos kills: a query that writes the image of every record of a topic to another.

    python -m angarium.testing.spark.copying JOB

`JOB` is a JSON document (`Job`). The query runs until standard input ends, so that it never
outlives whoever started it.
"""

from __future__ import annotations

import sys
import threading
from typing import Final

import msgspec

from angarium.spark.session import spark_session

IMAGE: Final = b"image of "
"""What stands before a record's value in its image."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to copy, where to, and how."""

    master: str
    servers: str
    source: str
    sink: str
    checkpoint: str
    records_per_batch: int
    config: dict[str, str] = {}


def main(job: Job) -> int:
    """Run the query; return 0 if it was told to stop."""
    spark = spark_session(job.master, name="copying", config=job.config)
    query = (
        spark.readStream.format("angarium")
        .options(servers=job.servers, subscribe=job.source, startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", job.records_per_batch)
        .option("minPartitions", 2)
        .load()
        .selectExpr("key", f"concat('{IMAGE.decode()}', string(value)) AS value")
        .writeStream.format("angarium")
        .options(servers=job.servers, topic=job.sink, checkpointLocation=job.checkpoint)
        .start()
    )

    def stop_at_the_end() -> None:
        sys.stdin.read()
        query.stop()

    threading.Thread(target=stop_at_the_end, daemon=True).start()
    query.awaitTermination()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(msgspec.json.decode(sys.argv[1], type=Job)))
