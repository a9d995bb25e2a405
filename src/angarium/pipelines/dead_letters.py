"""Dead letters in bulk: why records were given up, since when, how many, and which to send back.

Reasons that differ only in a number, an id or a quoted text are one *cause*. What is computed here
changes nothing; `angarium dlq redrive --set FILE` sends a chosen set back, each letter once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from angarium.client import Client
from angarium.client.dead_letters import DEAD_LETTERS, PREFIX
from angarium.errors import InvalidArgument
from angarium.spark.options import read_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

SAMPLES: Final = 3
"""Letters shown of each cause, the newest, unless asked otherwise."""

SAMPLE_BYTES: Final = 200
"""How much of a value a sample shows."""

SET_MAX: Final = 1_000_000
"""Letters in a set. More are refused: choose by cause or by time."""

_CAUSES: Final = (
    # Ids first: they have numbers in them.
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"(?i)\b0x[0-9a-f]+\b", "<id>"),
    (r"(?i)\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b", "<id>"),
    (r"'[^']*'", "'…'"),
    (r'"[^"]*"', '"…"'),
    (r"\d+(\.\d+)*", "<n>"),
)


def letters(
    spark: SparkSession,
    *,
    options: Mapping[str, str],
    topic: str = DEAD_LETTERS,
    dealt_with: Mapping[int, tuple[int, ...]] | None = None,
) -> DataFrame:
    """Return dead letters as rows: where each came from, why, and the record itself.

    Columns: letter (as `dlq redrive` takes it), partition, offset, key, value, headers, timestamp,
    from_topic, from_partition, from_offset, group, attempts, reason, cause, first_at, last_at.
    `dealt_with` are the ranges to leave out, by partition (`DeadLetters.dealt_with`).
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    given = {**options, "subscribe": topic, "includeHeaders": "true"}
    rows = spark.read.format("angarium").options(**given).load()
    if dealt_with:
        rows = rows.mapInArrow(_still_open(dict(dealt_with)), rows.schema)

    def told(name: str) -> str:
        return f"string(headers['{PREFIX}{name}'])"

    cause = f.col("reason")
    for pattern, instead in _CAUSES:
        cause = f.regexp_replace(cause, pattern, instead)
    return (
        rows.where(f"{told('topic')} IS NOT NULL")
        .selectExpr(
            "concat(partition, '@', offset) AS letter",
            "partition",
            "offset",
            "key",
            "value",
            "headers",
            "timestamp",
            f"{told('topic')} AS from_topic",
            f"try_cast({told('partition')} AS int) AS from_partition",
            f"try_cast({told('offset')} AS long) AS from_offset",
            f"coalesce({told('group')}, '') AS group",
            f"try_cast({told('attempts')} AS int) AS attempts",
            f"coalesce({told('reason')}, '') AS reason",
            f"timestamp_micros(try_cast({told('first-at')} AS long)) AS first_at",
            f"timestamp_micros(try_cast({told('last-at')} AS long)) AS last_at",
        )
        .withColumn("cause", cause)
    )


def open_letters(
    spark: SparkSession, *, options: Mapping[str, str], topic: str = DEAD_LETTERS
) -> DataFrame:
    """Return the letters that nobody has dealt with, as `letters` does."""
    servers = read_options({**options, "subscribe": topic}, is_stream=False).servers
    dealt_with = asyncio.run(_dealt_with(servers, topic))
    return letters(spark, options=options, topic=topic, dealt_with=dealt_with)


def causes(found: DataFrame, *, samples: int = SAMPLES) -> DataFrame:
    """Return a row for each cause, topic and group: how many letters, since when, and samples."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)
    from pyspark.sql.window import Window  # noqa: PLC0415

    cause = ["cause", "from_topic", "group"]
    newest = Window.partitionBy(*cause).orderBy(f.desc("last_at"), "letter")
    sample = f.struct(
        "letter",
        "reason",
        "last_at",
        f.substring("value", 1, SAMPLE_BYTES).alias("value"),
    )
    return (
        found.withColumn("_rank", f.row_number().over(newest))
        .groupBy(*cause)
        .agg(
            f.count(f.lit(1)).alias("letters"),
            f.min("first_at").alias("first_seen"),
            f.max("last_at").alias("last_seen"),
            f.max("attempts").alias("attempts"),
            # What is null is not collected: nothing but the samples is ever kept.
            f.collect_list(f.when(f.col("_rank") <= samples, sample)).alias("samples"),
        )
        .orderBy(f.desc("letters"), *cause)
    )


def redrive_set(found: DataFrame) -> list[str]:
    """Return which letters rows are, as `angarium dlq redrive` takes them: PARTITION@OFFSET."""
    rows = found.select("partition", "offset").limit(SET_MAX + 1).toArrow()
    if rows.num_rows > SET_MAX:
        raise InvalidArgument(f"these are more than {SET_MAX:,} letters: choose by cause or time")
    rows = rows.sort_by([("partition", "ascending"), ("offset", "ascending")])
    columns = (rows.column(name).to_pylist() for name in ("partition", "offset"))
    return [f"{partition}@{offset}" for partition, offset in zip(*columns, strict=True)]


async def _dealt_with(servers: tuple[str, ...], topic: str) -> dict[int, tuple[int, ...]]:
    async with Client(*servers) as client:
        return await client.dead_letters(topic).dealt_with()


def _still_open(
    dealt_with: Mapping[int, tuple[int, ...]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def still_open(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("partition").to_numpy()
            offsets = batch.column("offset").to_numpy()
            settled = np.zeros(batch.num_rows, bool)
            for number, ranges in dealt_with.items():
                # First and past the last alternate: an odd number of bounds at or below an offset
                # means that it lies inside a range.
                inside = np.searchsorted(np.array(ranges), offsets, side="right") % 2 == 1
                settled |= (numbers == number) & inside
            yield batch.filter(pa.array(~settled))

    return still_open
