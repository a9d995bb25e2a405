"""Spark beside its own ceiling: the same rows from a Python Arrow source with no broker behind it.

    python -m benchmarks.spark [--records 5000000] [--only read,memory,sink,archive,latency]

Everything is measured in one session, after a warm-up, and compared within the run: absolute
figures belong to the machine, ratios to us. A broker of one node runs in a process of its own, on
a disk in memory where there is one, so that Spark and its data source are what is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from angarium import SyncClient
from angarium.pipelines.archive import archive
from angarium.spark.session import spark_session
from angarium.testing.broker import BrokerThread
from angarium.testing.spark.standalone import children, command_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from pyspark.sql import DataFrame, SparkSession

VALUE: Final = b"x" * 88
"""With its number in front, a record of 100 bytes."""

ROW: Final = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
)
BATCH: Final = 10_000
PARTITIONS: Final = 2
ROUNDS: Final = 3
PARTS: Final = ("read", "memory", "sink", "archive", "latency")


def main(arguments: list[str]) -> int:
    """Measure what `arguments` ask for, and print a table and a JSON document."""
    parser = argparse.ArgumentParser(description="Measure the Spark source and sink.")
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--only", default=",".join(PARTS), help=",".join(PARTS))
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args(arguments)
    figures: dict[str, float] = {}
    with broker() as (servers, cpu_seconds), tempfile.TemporaryDirectory() as folder:
        spark = spark_session(options.master)
        register_ceilings(spark, options.records)
        with SyncClient(servers) as client:
            fill(client, options.records)
            bench = Bench(spark, client, servers, options.records, Path(folder), cpu_seconds)
            print(f"{options.records:,} records of 100 bytes, {PARTITIONS} partitions")
            for part in options.only.split(","):
                found: dict[str, float] = getattr(bench, part)()
                for name, figure in found.items():
                    print(f"{name:<46}{figure:>14,.2f}", flush=True)
                figures |= found
        spark.stop()
    print(json.dumps(figures))
    return 0


class Bench:
    """The measurements, in one session."""

    def __init__(
        self,
        spark: SparkSession,
        client: SyncClient,
        servers: str,
        records: int,
        folder: Path,
        cpu_seconds: Callable[[], float],
    ) -> None:
        self._spark = spark
        self._client = client
        self._servers = servers
        self._records = records
        self._folder = folder
        self._cpu_seconds = cpu_seconds

    def read(self) -> dict[str, float]:
        """Batch read into `noop`, beside the Arrow source."""
        ours = self._spark.read.format("angarium").options(servers=self._servers, subscribe="bench")
        ceiling = self._spark.read.format("ceiling").load()
        to_noop(ceiling)
        to_noop(ours.load())
        best = self._rate(lambda: to_noop(ceiling))
        before = self._cpu_seconds()
        rate = self._rate(lambda: to_noop(ours.load()))
        cpu = (self._cpu_seconds() - before) / ROUNDS
        gigabytes = self._records * 100 / 1e9
        return {
            "ceiling: rows/s of an Arrow source to noop": best,
            "batch read: rows/s": rate,
            "batch read: share of the ceiling": rate / best,
            "broker: CPU seconds per GB read": cpu / gigabytes,
        }

    def memory(self) -> dict[str, float]:
        """The largest Python worker after a short range, and after all records in one task each."""
        ours = self._spark.read.format("angarium").options(servers=self._servers)
        ends = json.dumps({"bench": dict.fromkeys(map(str, range(PARTITIONS)), 50_000)})
        to_noop(ours.options(subscribe="bench", endingOffsets=ends).load())
        short = largest_worker_bytes()
        whole = self._spark.read.format("angarium").options(servers=self._servers)
        to_noop(whole.options(subscribe="bench", maxRecordsPerPartition=self._records).load())
        return {
            "Python worker: MB after 50,000 records": short / 1e6,
            f"Python worker: MB after {self._records // PARTITIONS:,} in a task": (
                largest_worker_bytes() / 1e6
            ),
        }

    def sink(self) -> dict[str, float]:
        """Batch write, beside an Arrow writer that only counts."""
        rows = self._spark.read.format("ceiling").load().selectExpr("value")
        rows.write.format("ceiling").mode("append").save()
        best = self._rate(lambda: rows.write.format("ceiling").mode("append").save())
        # Each round has a topic of its own, as memory is all the disk there is.
        topics = [f"sink-{number}" for number in range(ROUNDS + 1)]
        coming = iter(topics)

        def write() -> None:
            target = rows.write.format("angarium").options(servers=self._servers)
            target.mode("append").save(next(coming))

        seconds = []
        before = 0.0
        for number, topic in enumerate(topics):
            self._client.create_topic(topic, partitions=8)
            if number == 1:
                before = self._cpu_seconds()  # the first round only warms up
            seconds.append(self._seconds(write))
            assert self._ends(topic) == self._records, "everything was written"
            self._client.delete_topic(topic)
        cpu = (self._cpu_seconds() - before) / ROUNDS
        rate = self._records / min(seconds[1:])
        return {
            "counting writer: rows/s": best,
            "sink: rows/s": rate,
            "sink: share of the counting writer": rate / best,
            "broker: CPU seconds per GB written": cpu / (self._records * 100 / 1e9),
        }

    def archive(self) -> dict[str, float]:
        """Everything into a new table."""
        counter = iter(range(100))

        def run() -> None:
            here = self._folder / f"archive-{next(counter)}"
            options = {"servers": self._servers, "subscribe": "bench"}
            query = archive(
                self._spark,
                str(here / "lake"),
                checkpoint=str(here / "checkpoint"),
                options=options,
                once=True,
            )
            query.awaitTermination()

        run()
        return {"archive: rows/s, start and end included": self._rate(run)}

    def latency(self) -> dict[str, float]:
        """A tuned stream from topic to topic under a light load: batches, and end to end."""
        self._client.create_topic("ticks")
        self._client.create_topic("tocks")
        query = (
            self._spark.readStream.format("angarium")
            .options(servers=self._servers, subscribe="ticks", startingOffsets="earliest")
            .load()
            .selectExpr("value")
            .writeStream.format("angarium")
            .options(servers=self._servers, topic="tocks")
            .option("checkpointLocation", str(self._folder / "latency"))
            .start()
        )
        arrived: list[float] = []
        records = self._client.subscribe("tocks", start="earliest")
        deadline = time.monotonic() + 30
        try:
            while time.monotonic() < deadline:
                self._client.publish("ticks", str(time.time_ns()))
                batch = records.next_batch()
                assert batch is not None
                arrived += [(time.time_ns() - int(value or b"0")) / 1e6 for value in batch.values()]
        finally:
            records.close()
            query.stop()
        times = [
            one["durationMs"]["triggerExecution"]
            for one in query.recentProgress[20:]
            if one["numInputRows"]
        ]
        return {
            "micro-batch: median ms": statistics.median(times or [0]),
            "produced to delivered again: p50 ms": statistics.median(arrived[20:] or [0]),
        }

    def _rate(self, action: Callable[[], None]) -> float:
        """Return the best rate of several rounds: the one least disturbed by others."""
        return self._records / min(self._seconds(action) for _ in range(ROUNDS))

    def _seconds(self, action: Callable[[], None]) -> float:
        started = time.perf_counter()
        action()
        return time.perf_counter() - started

    def _ends(self, topic: str) -> int:
        return sum(
            int(one.end_offset or 0) for one in self._client.describe_topic(topic).partitions
        )


def largest_worker_bytes() -> int:
    """Return the most memory that one of this session's Python workers has ever held."""
    peaks = [0]
    for process in children(os.getpid()):
        # Workers are forked by a daemon and share its command line.
        if "-m angarium.spark.daemon" in command_line(process):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
                peaks.append(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
    return max(peaks)


def to_noop(rows: DataFrame) -> None:
    """Have every row read, and dropped."""
    rows.write.format("noop").mode("overwrite").save()


def fill(client: SyncClient, records: int) -> None:
    """Publish the records to read."""
    client.create_topic("bench", partitions=PARTITIONS)
    for start in range(0, records, BATCH):
        values = [b"%012d" % number + VALUE for number in range(start, start + BATCH)]
        client.publish_batch("bench", values, partition=start // BATCH % PARTITIONS)


def register_ceilings(spark: SparkSession, records: int) -> None:
    """Register the source and the sink that have nothing behind them."""

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(PARTITIONS)]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            count = records // PARTITIONS
            batch = pa.RecordBatch.from_arrays(
                [
                    pa.nulls(BATCH, pa.binary()),
                    pa.array([b"%012d" % number + VALUE for number in range(BATCH)], pa.binary()),
                    pa.repeat(pa.scalar("bench"), BATCH),
                    pa.repeat(pa.scalar(partition.value, pa.int32()), BATCH),
                    pa.array(range(BATCH), pa.int64()),
                    pa.repeat(pa.scalar(0, pa.timestamp("us", tz="UTC")), BATCH),
                ],
                names=["key", "value", "topic", "partition", "offset", "timestamp"],
            )
            for _ in range(count // BATCH):
                yield batch

    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            sum(batch.num_rows for batch in iterator)
            return WriterCommitMessage()

        def commit(self, messages: list[WriterCommitMessage | None]) -> None:
            pass

    class Ceiling(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ceiling"

        def schema(self) -> str:
            return ROW

        def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
            return Reader()

        def writer(self, schema: Any, overwrite: bool) -> Any:  # noqa: ARG002
            return Writer()

    spark.dataSource.register(Ceiling)


@contextlib.contextmanager
def broker() -> Iterator[tuple[str, Callable[[], float]]]:
    """Run a broker in a process of its own; yields its address, and what asks for its CPU time."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,))
    process.start()
    try:
        servers: str = here.recv()

        def cpu_seconds() -> float:
            here.send("cpu")
            answer: float = here.recv()
            return answer

        yield servers, cpu_seconds
    finally:
        here.send("end")
        process.join()


def _serve(pipe: Connection) -> None:
    with BrokerThread() as running:
        pipe.send(",".join(running.addresses))
        while pipe.recv() == "cpu":
            used = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
