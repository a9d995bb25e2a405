"""On a real cluster: master and two workers from the wheel; workers, executors, drivers and brokers
are killed in the middle."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.spark.versions import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from angarium import SyncClient
    from angarium.testing.spark.standalone import Standalone

RECORDS = 40_000
PER_BATCH = "4000"
PATIENCE_S = 500

CHAOS_RECORDS = 200_000
CHAOS_FAULTS = ("executor", "leader", "driver", "executor", "leader")

DRIVER = """
import sys
from angarium.pipelines.archive import archive
from angarium.spark.session import spark_session

master, servers, source, sink, folder, per_batch, java = sys.argv[1:]
config = {
    "spark.executor.memory": "768m",
    "spark.driver.extraJavaOptions": java,
    "spark.executor.extraJavaOptions": java,
}
spark = spark_session(master, config=config)
options = {"servers": servers, "subscribe": source, "maxOffsetsPerTrigger": per_batch}
copying = (
    spark.readStream.format("angarium")
    .options(startingOffsets="earliest", minPartitions="2", **options)
    .load()
    .selectExpr("key", "value")
    .writeStream.format("angarium")
    .options(servers=servers, topic=sink, checkpointLocation=folder + "/copy")
    .trigger(availableNow=True)
    .start()
)
copying.awaitTermination()
archiving = archive(
    spark, folder + "/lake", checkpoint=folder + "/archive", options=options, once=True
)
archiving.awaitTermination()
spark.stop()
"""


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A Spark cluster for all tests here; whoever kills something starts it again."""
    pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
    from angarium.testing.spark.standalone import Standalone

    with Standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@limits
def test_with_drivers_executors_and_leaders_killed_the_output_is_the_inputs_image(
    standalone: Standalone, tmp_path: Path
) -> None:
    from angarium.testing.spark import chaos

    verdict = asyncio.run(
        chaos.run(
            tmp_path,
            records=CHAOS_RECORDS,
            faults=CHAOS_FAULTS,
            say=print,
            spark=standalone,
            quick=True,
        )
    )
    print(verdict)
    assert verdict.is_exact, verdict
    assert verdict.copied == CHAOS_RECORDS
    assert verdict.killed == Counter(CHAOS_FAULTS)
    assert verdict.ended == []


@limits
def test_a_worker_killed_in_the_middle_makes_neither_a_hole_nor_a_duplicate(
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    standalone: Standalone,
    new_topic: Callable[[int], str],
) -> None:
    pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")
    from angarium.spark.lake import Lake
    from angarium.testing.spark.standalone import (
        QUICK_JAVA,
        driver_environment,
        kill_tree,
        until,
    )

    source, sink = new_topic(2), new_topic(2)
    values = [b"%d" % number for number in range(RECORDS)]
    for start in range(0, RECORDS, 10_000):
        some = values[start : start + 10_000]
        client.publish_batch(source, some, keys=some)

    def written() -> int:
        return sum(int(one.end_offset or 0) for one in client.describe_topic(sink).partitions)

    standalone.wait_for_workers()
    job = [standalone.master, servers, source, sink, str(tmp_path), PER_BATCH, QUICK_JAVA]
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *job], env=driver_environment(), stdout=log, stderr=log
        )
        try:
            until(
                lambda: written() > 0 or driver.poll() is not None,
                PATIENCE_S,
                "the first batch is there",
            )
            standalone.kill_worker(0)
            until(lambda: driver.poll() is not None, PATIENCE_S, "the driver is done")
        finally:
            kill_tree(driver)
            standalone.restart_worker(0)
    said = (tmp_path / "driver.log").read_text(encoding="utf-8", errors="replace")
    assert driver.returncode == 0, said[-4000:]
    assert Counter(record.value for record in client.read(sink)) == Counter(values)
    import pyarrow.parquet as pq

    archived = [
        value
        for file in Lake(str(tmp_path / "lake")).files()
        for value in pq.ParquetFile(file).read(["value"]).column("value").to_pylist()
    ]
    assert Counter(archived) == Counter(values)
