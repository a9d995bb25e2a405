"""The figures of topics, window by window; the same for a table as for a stream.

Windows are of the time at which records were appended: that time never goes back in a partition,
so a window is complete when it is over. When records were *made* is what their latency and whether
they are late are told from, where producers say it; and, for a stream, how long it took them to get
from their producers to the query that counts them.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

ROW: Final = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "producer_timestamp timestamp"
)
"""What figures need of a record."""

STATE_VERSION: Final = 2
"""Of what a stream keeps for a window that is not over. Raise it with every change to what is
aggregated below. 2: times from end to end."""

PERCENTILES: Final = (50, 95, 99)
ACCURACY: Final = 1000
"""Of percentiles: off by at most a thousandth of the records."""
KEYS_ERROR: Final = 0.02
"""Of the number of distinct keys: the standard deviation."""

_MEASURED: Final = (
    "topic string, key binary, timestamp timestamp, bytes long, gap_us long, latency_us long, "
    "end_to_end_us long"
)
_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("bytes", pa.int64()),
        ("gap_us", pa.int64()),
        ("latency_us", pa.int64()),
        ("end_to_end_us", pa.int64()),
    ]
)


def figures(
    rows: DataFrame, *, window: str, late_after_s: float, watermark: str | None = None
) -> DataFrame:
    """Return a row for each topic and window in which it got anything.

    | column | |
    |---|---|
    | topic, starts_at, ends_at | |
    | records, bytes, records_per_s, bytes_per_s | bytes are those of keys and values |
    | keys | distinct ones, within about 2 % |
    | gap_ms_p50, _p95, _p99 | time since the record before it in its partition |
    | latency_ms_p50, … | from the producer's time to the append; null where producers give none |
    | end_to_end_ms_p50, … | from the producer's time until a task of the query had the record, by
      the clock of the task's machine; null where producers give none, and for a table: what was
      written long ago says nothing about that |
    | late | records appended later than `late_after_s` after their time |

    `watermark` is for streams: how far partitions may be apart; a window comes out when it is over
    for all.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    measured = rows.selectExpr(
        "topic",
        "partition",
        "key",
        "timestamp",
        "coalesce(octet_length(value), 0) + coalesce(octet_length(key), 0) AS bytes",
        "unix_micros(timestamp) - unix_micros(producer_timestamp) AS latency_us",
    ).mapInArrow(partial(_measured, is_live=watermark is not None), _MEASURED)
    if watermark is not None:
        measured = measured.withWatermark("timestamp", watermark)
    counted = measured.groupBy(f.window("timestamp", window).alias("w"), "topic").agg(
        f.count(f.lit(1)).alias("records"),
        f.sum("bytes").alias("bytes"),
        f.approx_count_distinct("key", KEYS_ERROR).alias("keys"),
        _percentiles("gap_us").alias("gaps"),
        _percentiles("latency_us").alias("latencies"),
        _percentiles("end_to_end_us").alias("ends"),
        f.sum((f.col("latency_us") > int(late_after_s * 1e6)).cast("long")).alias("late"),
    )
    seconds = f.expr("(unix_micros(w.end) - unix_micros(w.start)) / 1e6")
    return counted.select(
        "topic",
        f.col("w.start").alias("starts_at"),
        f.col("w.end").alias("ends_at"),
        "records",
        "bytes",
        f.round(f.col("records") / seconds, 3).alias("records_per_s"),
        f.round(f.col("bytes") / seconds, 3).alias("bytes_per_s"),
        "keys",
        *_named("gaps", "gap_ms"),
        *_named("latencies", "latency_ms"),
        *_named("ends", "end_to_end_ms"),
        f.coalesce("late", f.lit(0)).alias("late"),
    )


def _measured(batches: Iterator[pa.RecordBatch], *, is_live: bool) -> Iterator[pa.RecordBatch]:
    """Say of every record how long after the one before it in its partition it came, and, if it is
    read as it comes, how long it took until here.

    A task has its partitions' records in order. The first of each has nothing before it here, so
    one gap per partition and task is not known.
    """
    last: dict[tuple[str, int], int] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        times = batch.column("timestamp").cast(pa.int64()).to_numpy()
        gaps = np.zeros(len(times), np.int64)
        gaps[1:] = np.diff(times)
        unknown = np.zeros(len(times), bool)
        # Where another partition begins; each run of rows is of one.
        topics = batch.column("topic").dictionary_encode().indices.to_numpy()
        numbers = batch.column("partition").to_numpy()
        is_new = (np.diff(topics) != 0) | (np.diff(numbers) != 0)
        starts = [0, *(1 + np.flatnonzero(is_new)).tolist()]
        for start, stop in zip(starts, [*starts[1:], len(times)], strict=True):
            topic_partition = (batch.column("topic")[start].as_py(), int(numbers[start]))
            before = last.get(topic_partition)
            unknown[start] = before is None
            gaps[start] = 0 if before is None else int(times[start]) - before
            last[topic_partition] = int(times[stop - 1])
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("topic"),
                batch.column("key"),
                batch.column("timestamp"),
                batch.column("bytes").cast(pa.int64()),
                pa.array(gaps, pa.int64(), mask=unknown),
                batch.column("latency_us"),
                _end_to_end_us(batch, times) if is_live else pa.nulls(len(times), pa.int64()),
            ],
            schema=_SCHEMA,
        )


def _end_to_end_us(batch: pa.RecordBatch, times: Any) -> pa.Array:
    """Return how long ago each record's producer made it: to the append, and from there to now."""
    since_append = pa.array(time.time_ns() // 1000 - times, pa.int64())
    return pc.add(since_append, batch.column("latency_us"))


def _percentiles(column: str) -> Column:
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    return f.percentile_approx(column, [one / 100 for one in PERCENTILES], ACCURACY)


def _named(column: str, name: str) -> list[Any]:
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    return [
        f.round(f.col(column)[at] / 1000, 3).alias(f"{name}_p{one}")
        for at, one in enumerate(PERCENTILES)
    ]
