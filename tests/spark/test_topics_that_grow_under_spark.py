"""Topics that are given partitions while Spark writes to them, or mirrors them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.versions import stream_sink

from angarium import Client, SyncClient
from angarium.batch import BatchBuilder
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

KEYS = 8
WITHIN_S = 300.0


class Watched:
    """Reads a topic that grows: of each key, the numbers have to come one after the other."""

    def __init__(self, servers: str, topic: str) -> None:
        self.seen: Counter[bytes] = Counter()
        self.faults: list[str] = []
        self._servers, self._topic = servers.split(","), topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()))

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def until(self, total: int) -> None:
        """Wait until so many records have come."""
        deadline = time.monotonic() + WITHIN_S
        while self.seen.total() < total and not self.faults and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.faults == []
        assert self.seen.total() == total

    async def _read(self) -> None:
        async with Client(*self._servers) as client:
            reading = asyncio.create_task(self._take(client))
            while not self._stop.is_set() and not reading.done():  # noqa: ASYNC110 - a thread's
                await asyncio.sleep(0.05)
            reading.cancel()
            await asyncio.wait((reading,))

    async def _take(self, client: Client) -> None:
        async with client.subscribe(self._topic, start="earliest") as records:
            async for record in records:
                key, number = record.key or b"", int(record.value or b"")
                if number != self.seen[key]:
                    self.faults.append(f"{key!r}: {number} came instead of {self.seen[key]}")
                self.seen[key] += 1


@stream_sink
def test_keys_keep_their_order_while_a_stream_writes_and_partitions_are_added(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    checkpoint: str,
    new_topic: Callable[[int], str],
) -> None:
    source, sink = new_topic(1), new_topic(2)
    keys = [b"key-%d" % one for one in range(KEYS)]
    rows: Any = spark.readStream.format("angarium")
    rows = rows.options(servers=servers, subscribe=source, startingOffsets="earliest").load()
    query = (
        rows.selectExpr("key", "value")
        .writeStream.format("angarium")
        .options(servers=servers, topic=sink, checkpointLocation=checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        with Watched(servers, sink) as watched:
            published = KEYS
            client.publish_batch(source, [b"0"] * KEYS, keys=keys)
            watched.until(published)  # from here on the query runs batch after batch
            additions = iter((3, 5))
            for number in range(1, 60):
                client.publish_batch(source, [b"%d" % number] * KEYS, keys=keys)
                published += KEYS
                if number in (20, 40):
                    # In the midst of batches, and followed without a restart.
                    client.alter_topic(sink, partitions=next(additions))
                time.sleep(0.03)
            watched.until(published)
        assert query.exception() is None
        info = client.describe_topic(sink)
        assert (info.layouts, info.layout) == ((2, 3, 5), 2)
        assert any(one.end_offset for one in info.partitions[3:])
    finally:
        query.stop()


def test_a_write_by_id_that_was_left_half_way_is_done_once_though_the_topic_grows(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    rows = spark.range(0, 200, 1, 2).selectExpr("string(id % 8) AS key", "string(id) AS value")

    def write(frame: Any, write_id: str = "nightly") -> None:
        options = {"servers": servers, "topic": topic, "writeId": write_id}
        frame.write.format("angarium").options(**options).mode("append").save()

    def broken(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        if context is not None and context.partitionId() == 1:
            raise RuntimeError("one task fails after the other has staged")

    with pytest.raises(Exception, match="one task fails"):
        write(rows.mapInArrow(broken, rows.schema))
    # It waits if the task that was killed has left something; the next run drops that.
    client.alter_topic(topic, partitions=5)
    write(rows)
    write(rows)
    deadline = time.monotonic() + WITHIN_S
    while not client.describe_topic(topic).layout:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    records = list(client.read(topic))
    assert Counter(one.value for one in records) == Counter(b"%d" % one for one in range(200))
    assert len({(one.key, one.partition) for one in records}) == KEYS
    write(rows, "tonight")
    assert max(one.partition for one in client.read(topic)) > 1


@stream_sink
def test_keys_keep_their_order_in_a_mirror_whose_topic_is_given_partitions(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from angarium.pipelines.jobs import Mirror
    from angarium.pipelines.mirror import mirror

    topic = new_topic(2)
    keys = [b"key-%d" % one for one in range(KEYS)]

    def publish(first: int, past: int) -> None:
        for number in range(first, past):
            client.publish_batch(topic, [b"%d" % number] * KEYS, keys=keys)

    with BrokerThread() as elsewhere:
        to = ",".join(elsewhere.addresses)
        options = {"servers": servers, "subscribe": topic}
        # A mirror that begins after the topic has grown makes it as it was, and lets it grow.
        publish(0, 20)
        client.alter_topic(topic, partitions=3)
        publish(20, 40)
        query = mirror(
            spark,
            Mirror(to=to, options=options),
            checkpoint=str(tmp_path / "mirror"),
            interval="0 seconds",
        )
        try:
            with SyncClient(to) as there:
                deadline = time.monotonic() + WITHIN_S
                while topic not in {one.name for one in there.list_topics()}:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                with Watched(to, topic) as watched:
                    watched.until(40 * KEYS)
                    client.alter_topic(topic, partitions=6)
                    publish(40, 60)
                    watched.until(60 * KEYS)
                info, copied = client.describe_topic(topic), there.describe_topic(topic)
                assert info.layouts == copied.layouts == (2, 3, 6)
                ends = [[one.end_offset for one in about.partitions] for about in (info, copied)]
                assert ends[0] == ends[1]
                fences = [[one.fences for one in about.partitions] for about in (info, copied)]
                assert fences[0] == fences[1]
            assert query.exception() is None
        finally:
            query.stop()


def test_a_batch_dealt_by_an_older_layout_is_told_so(
    client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    """What the sink's tasks go by when they deal their rows anew."""
    from angarium.errors import TransactionAborted

    topic = new_topic(1)
    client.alter_topic(topic, partitions=2)

    async def story() -> None:
        builder = BatchBuilder(bytes_max=1 << 10)
        builder.add(b"value", key=b"key")
        async with Client(*servers.split(",")) as other:
            stage = other.staged(f"write-{topic}", epoch=0, sequence=0).stage("task")
            await stage.put_batch(topic, 0, builder.build(), layout=0)
            with pytest.raises(TransactionAborted):
                await stage.close()
            assert (stage.is_empty, stage.outdated) == (True, {topic: 0})

    asyncio.run(story())
