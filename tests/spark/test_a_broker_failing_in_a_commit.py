"""The sink's commit while the broker that decides it is killed: all of the batch, once."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 4
ROWS = 4_000
TASKS = 2


def test_a_leader_killed_in_the_middle_of_a_commit_leaves_the_batch_once(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
    import pyarrow as pa
    from pyspark.sql.types import BinaryType, StructField, StructType

    from angarium.client import Client
    from angarium.spark.sink import AngariumWriter
    from angarium.spark.write_options import write_options
    from angarium.testing.cluster import ProcessCluster

    random.seed(6)
    schema = StructType([StructField("value", BinaryType())])
    topic = "committed-under-fire"

    def rows(start: int) -> pa.RecordBatch:
        values = [b"%d" % number for number in range(start, start + ROWS)]
        return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], ["value"])

    def write(writer: AngariumWriter, begin: int, victim: Victim) -> None:
        tasks = [writer.write(iter([rows(begin + ROWS * one)])) for one in range(TASKS)]
        victim.kill_soon()
        writer.commit(list(tasks))

    async def ran() -> Counter[bytes]:
        async with ProcessCluster(tmp_path / "brokers") as brokers:
            await brokers.create_topic(topic, partitions=2)
            servers = ",".join(node.address for node in brokers.nodes.values())
            for number in range(ROUNDS):
                options = write_options({"servers": servers, "topic": topic}, is_stream=False)
                writer = AngariumWriter(options, schema)
                leader = brokers.nodes[await brokers.leader(topic, number % 2)]
                victim = Victim(leader.kill, random.uniform(0.0, 0.02))
                await asyncio.to_thread(write, writer, number * TASKS * ROWS, victim)
                victim.join()
                assert leader.id is not None
                brokers.restart(leader.id)
                await brokers.back(leader.id)
                await brokers.settled()
            found: Counter[bytes] = Counter()
            async with Client(servers) as client:
                async for batch in client.read_batches(topic):
                    found.update(bytes(value or b"") for value in batch.values())
            return found

    found = asyncio.run(ran())
    assert found == Counter(b"%d" % number for number in range(ROUNDS * TASKS * ROWS))


class Victim:
    """Is killed from another thread, a moment after the word."""

    def __init__(self, kill: object, after_s: float) -> None:
        assert callable(kill)
        self._kill = kill
        self._after_s = after_s
        self._thread = threading.Thread(target=self._run)

    def kill_soon(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        # No waiting for something to become so: the moment itself is what is drawn by lot.
        time.sleep(self._after_s)
        self._kill()
