"""On a real cluster: master and two workers from the wheel, one of them killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium import SyncClient

RECORDS = 40_000
PER_BATCH = "4000"
PATIENCE_S = 500

DRIVER = """
import sys
from angarium.pipelines.archive import archive
from angarium.spark.session import spark_session

master, servers, source, sink, folder, per_batch = sys.argv[1:]
spark = spark_session(master, config={"spark.executor.memory": "768m"})
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def children(pid: int) -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        found = [int(one) for one in text.split()]
        return [*found, *(below for one in found for below in children(one))]
    return []


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it started, at once."""
    for pid in [process.pid, *children(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Run a master and two workers of one core; yields its address and the workers."""
    import pyspark

    from angarium.spark.java import java
    from angarium.spark.session import cache_folder

    home = Path(pyspark.__path__[0])
    env = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java(cache_folder()).home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    port, page = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    spark_class = str(home / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        log = (folder / "cluster.log").open("ab")
        with log:
            return subprocess.Popen([spark_class, *arguments], env=env, stdout=log, stderr=log)

    with ExitStack() as stack:
        address = ("--host", "127.0.0.1")
        ports = ("--port", str(port), "--webui-port", str(page))
        stack.callback(kill, started(f"{deploy}.master.Master", *address, *ports))
        workers = []
        for number in range(2):
            room = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"w{number}"))
            worker = started(
                f"{deploy}.worker.Worker", *address, "--webui-port", "0", *room, master
            )
            stack.callback(kill, worker)
            workers.append(worker)
        until(lambda: alive_workers(page) == 2, "both workers are there")
        yield master, workers


def alive_workers(page: int) -> int:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{page}/json/") as answer:
        alive: int = json.load(answer)["aliveworkers"]
        return alive
    return 0


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        time.sleep(0.2)


def test_a_worker_killed_in_the_middle_makes_neither_a_hole_nor_a_duplicate(
    client: SyncClient, servers: str, tmp_path: Path, new_topic: Callable[[int], str]
) -> None:
    pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
    pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")
    from angarium.spark.lake import Lake

    source, sink = new_topic(2), new_topic(2)
    values = [b"%d" % number for number in range(RECORDS)]
    for start in range(0, RECORDS, 10_000):
        some = values[start : start + 10_000]
        client.publish_batch(source, some, keys=some)

    def written() -> int:
        return sum(int(one.end_offset or 0) for one in client.describe_topic(sink).partitions)

    # The Spark home that this process may have chosen for itself is for a local master.
    own = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    with cluster(tmp_path) as (master, workers), (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, master, servers, source, sink, str(tmp_path), PER_BATCH],
            env={**own, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=log,
            stderr=log,
        )
        try:
            until(lambda: written() > 0 or driver.poll() is not None, "the first batch is there")
            kill(workers[0])
            until(lambda: driver.poll() is not None, "the driver is done")
        finally:
            kill(driver)
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
