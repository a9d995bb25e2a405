"""Subscriptions: every record once and in order, whatever happens to the nodes behind them."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_partition import Partition
from tests.component.client.harness import batches_taken, taken, talking
from tests.on_a_loop import eventually

from angarium.batch import Batch
from angarium.errors import InvalidArgument, NotFound, NotLeader, OffsetOutOfRange
from angarium.modes import DeliveryMode
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.client import Record


def dense(records: list[Record]) -> bool:
    """Tell whether each partition's records follow one another without gap or repetition."""
    nexts: dict[tuple[str, int], int] = {}
    for record in records:
        assert record.offset is not None
        key = (record.topic, record.partition)
        if nexts.get(key, record.offset) != record.offset:
            return False
        nexts[key] = record.offset + 1
    return True


def test_a_live_subscription_sees_what_comes_after_it_began(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=3, nodes=2) as (_, client):
            await client.publish_batch("t", [b"old"] * 10)
            async with client.subscribe("t") as records:
                assert records.partitions == [("t", 0), ("t", 1), ("t", 2)]
                receipts = [
                    await client.publish("t", b"%d" % at, key=b"%d" % at) for at in range(9)
                ]
                got = await taken(records, 9)
                assert {(one.partition, one.offset) for one in got} == {
                    (one.partition, one.offset) for one in receipts
                }
                one = got[0]
                assert (one.topic, one.key, one.value) == ("t", one.value, one.key)
                assert one.append_time

    run(main())


@pytest.mark.parametrize("start", ["earliest", 0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)])
def test_a_subscription_begins_where_it_is_told(run: Runner, start: object) -> None:
    async def main() -> None:
        async with talking(partitions=2, batch_bytes=500) as (_, client):
            await client.publish_batch("t", [b"%d" % at for at in range(100)], partition=0)
            await client.publish_batch("t", [b"%d" % at for at in range(100)], partition=1)
            async with client.subscribe("t", start=start) as records:  # type: ignore[arg-type]
                got = await taken(records, 200)
                assert dense(got)
                assert sorted(int(one.value or b"") for one in got) == sorted([*range(100)] * 2)

    run(main())


def test_a_start_may_lie_inside_a_batch_and_differ_by_partition(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=3) as (_, client):
            for partition in range(3):
                await client.publish_batch("t", [b"x"] * 10, partition=partition)
            async with client.subscribe("t", start={0: 7, 1: 9}) as records:
                got = await taken(records, 14)
                places = sorted((one.partition, one.offset) for one in got)
                assert places == [(0, 7), (0, 8), (0, 9), (1, 9), *((2, at) for at in range(10))]

    run(main())


def test_a_start_that_makes_no_sense_is_refused_at_once(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            for start in ("yesterday", -1):
                with pytest.raises(InvalidArgument):
                    client.subscribe("t", start=start)
            with pytest.raises(InvalidArgument):
                client.subscribe()
            with pytest.raises(NotFound):
                await client.subscribe("nowhere").begin()
            with pytest.raises(NotFound):
                async for _ in client.subscribe("nowhere"):
                    pass

    run(main())


def test_whoever_leaves_a_loop_goes_on_with_the_next_record(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            await client.publish_batch("t", [b"%d" % at for at in range(10)])
            async with client.subscribe("t", start="earliest") as records:
                got = [one.value for _ in range(5) for one in await taken(records, 2)]
                assert got == [b"%d" % at for at in range(10)]

    run(main())


def test_batches_come_as_they_are_stored_and_as_arrow(run: Runner) -> None:
    pytest.importorskip("pyarrow")

    async def main() -> None:
        async with talking() as (cluster, client):
            for _ in range(3):
                await client.publish_batch("t", [b"%d" % at for at in range(10)], timestamps=9)
            async with client.subscribe("t", start=5) as records:
                batches = await batches_taken(records, 25)
                assert [len(batch) for batch in batches] == [5, 10, 10]
                assert batches[0].values() == [b"%d" % at for at in range(5, 10)]
                assert list(batches[0].offsets()) == [5, 6, 7, 8, 9]
                assert batches[0].keys() == [None] * 5
                stored = bytes(cluster.topics["t"].partitions[0].batches[1])
                assert bytes(batches[1].batch.buffer) == stored
            async with client.subscribe("t", start=5) as records:
                table = await anext(aiter(records.arrow()))
                assert table.column("offset").to_pylist() == [5, 6, 7, 8, 9]

    run(main())


def test_performance_records_come_without_offsets_among_the_others(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            mode = DeliveryMode.PERFORMANCE
            async with client.subscribe("t") as records:
                receipt = await client.publish("t", b"live", key=b"k", mode=mode)
                assert receipt.ack.subscribers == 1
                await client.publish("t", b"stored")
                live, stored = await taken(records, 2)
                assert (live.value, live.key, live.offset) == (b"live", b"k", None)
                assert (stored.value, stored.offset) == (b"stored", 0)
            async with client.subscribe("t") as records:
                await client.publish("t", b"live", mode=mode)
                (batch,) = await batches_taken(records, 1)
                assert batch.is_live
                assert batch.offsets() == ()

    run(main())


def test_a_pattern_finds_topics_and_later_ones_from_their_beginning(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2) as (_, client):
            await client.create_topic("orders.eu", partitions=2)
            await client.publish("orders.eu", b"before")
            async with client.subscribe("orders.*", "t") as records:
                assert records.partitions == [("orders.eu", 0), ("orders.eu", 1), ("t", 0)]
                await client.create_topic("orders.us")
                await client.publish("orders.us", b"us")
                await client.publish("t", b"t")
                got = await taken(records, 2)
                assert {(one.topic, one.value) for one in got} == {
                    ("orders.us", b"us"),
                    ("t", b"t"),
                }
                await client.delete_topic("orders.eu")
                await eventually(lambda: ("orders.eu", 0) not in records.partitions)
                await client.publish("t", b"still here")
                assert (await taken(records, 1))[0].value == b"still here"

    run(main())


def test_new_partitions_are_found_and_read_from_their_beginning(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client), client.subscribe("t") as records:
            await client.alter_topic("t", partitions=3)
            for partition in range(3):
                await client.publish("t", b"", partition=partition)
            got = await taken(records, 3)
            assert {one.partition for one in got} == {0, 1, 2}

    run(main())


def test_topics_are_added_and_dropped_on_the_same_stream(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.add_topic("u")
            cluster.add_topic("v")
            await client.publish("u", b"old")
            async with client.subscribe("t") as records:
                with pytest.raises(NotFound):
                    await records.add("nowhere")
                await records.add("u", start="earliest")
                await records.add("v")
                for topic in "tuv":
                    await client.publish(topic, b"new")
                got = [(one.topic, one.value) for one in await taken(records, 4)]
                assert sorted(got) == [("t", b"new"), ("u", b"new"), ("u", b"old"), ("v", b"new")]
                await records.drop("t", "u")
                assert records.partitions == [("v", 0)]
                for topic in "tuv":
                    await client.publish(topic, b"last")
                assert [one.topic for one in await taken(records, 1)] == ["v"]
                assert len(cluster.streams) == 1

    run(main())


def test_a_deleted_topic_ends_a_subscription_to_its_name(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client), client.subscribe("t") as records:
            await client.delete_topic("t")
            with pytest.raises(NotFound):
                await taken(records, 1)

    run(main())


def test_what_was_trimmed_away_is_told_and_not_skipped(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish_batch("t", [b""] * 10)
            cluster.topics["t"].partitions[0].start = 10
            records = client.subscribe("t", start=3)
            with pytest.raises(OffsetOutOfRange):
                await taken(records, 1)
            await records.close()

    run(main())


def test_a_slow_reader_is_sent_no_more_than_it_has_room_for(run: Runner) -> None:
    async def main() -> None:
        async with talking(delivery_bytes_max=50_000, batch_bytes=10_000) as (cluster, client):
            cluster.delivery_bytes = 10_000
            values = [b"%05d" % at * 200 for at in range(6_000)]
            await client.publish_batch("t", values)
            async with client.subscribe("t", start="earliest") as records:
                first = await taken(records, 1)
                mailbox = records._mailbox
                await eventually(lambda: not mailbox._room.is_set())
                assert mailbox._bytes < 80_000
                await client.publish("t", b"others go on")
                got = [*first, *await taken(records, 6_000)]
                assert [one.value for one in got] == [*values, b"others go on"]

    run(main())


def test_a_lost_connection_leaves_no_trace_in_the_records(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3, partitions=3, batch_bytes=300) as (cluster, client):
            cluster.delivery_bytes = 1_000
            for partition in range(3):
                values = [b"%d" % at for at in range(300)]
                await client.publish_batch("t", values, partition=partition)
            async with client.subscribe("t", start="earliest") as records:
                got: list[Record] = []
                for at in range(9):
                    got += await taken(records, 100)
                    cluster.nodes[at % 3].cut()
                assert dense(got)
                assert len(got) == 900

    run(main())


def test_when_a_node_dies_its_partitions_are_read_from_another(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3, partitions=3) as (cluster, client):
            records = client.subscribe("t")
            async with records:
                for partition in range(3):
                    await client.publish("t", b"1", partition=partition)
                got = await taken(records, 3)
                await cluster.node(2).stop()
                cluster.topics["t"].partitions[1].leader = 3
                for partition in range(3):
                    await client.publish("t", b"2", partition=partition)
                got += await taken(records, 3)
                assert dense(got)

    run(main())


def test_a_subscription_that_saw_nothing_yet_misses_nothing_across_a_failure(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2) as (cluster, client), client.subscribe("t") as records:
            cluster.node(1).cut()
            cluster.topics["t"].partitions[0].append(cluster_batch([b"while it was away"]))
            (one,) = await taken(records, 1)
            assert one.value == b"while it was away"

    run(main())


def test_the_stream_follows_the_leader(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2) as (cluster, client), client.subscribe("t") as records:
            await client.publish("t", b"1")
            got = await taken(records, 1)
            cluster.topics["t"].partitions[0].leader = 2
            await eventually(lambda: len(cluster.streams) == 2)
            await client.publish("t", b"2")
            got += await taken(records, 1)
            assert dense(got)

    run(main())


def test_repeated_and_overlapping_deliveries_are_seen_once(run: Runner) -> None:
    async def main() -> None:
        async with talking(batch_bytes=300) as (cluster, client):
            partition = cluster.topics["t"].partitions[0]
            plain = Partition.read

            def stuttering(self: Partition, offset: int, bytes_max: int = 1 << 20) -> object:
                """Go back a batch, as a node may that keeps a coarse index."""
                before = [one for one in self.batches if Batch.trusted(one).next_offset <= offset]
                found = plain(self, offset, bytes_max)
                return [*before[-1:], *found] if found else found

            partition.read = stuttering.__get__(partition)  # type: ignore[method-assign]
            async with client.subscribe("t") as records:
                for at in range(50):
                    await client.publish("t", b"%d" % at)
                got = await taken(records, 50)
                assert [one.value for one in got] == [b"%d" % at for at in range(50)]

    run(main())


def test_finding_where_to_begin_is_repeated_until_somebody_knows(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):

            async def unknown(node: object, request: object) -> bool:
                raise NotLeader

            cluster.plan(Operation.FIND_OFFSET, *[unknown] * 5)
            async with client.subscribe("t") as records:
                await client.publish("t", b"x")
                assert (await taken(records, 1))[0].offset == 0

    run(main())


def test_closing_ends_the_loop_of_whoever_reads(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            records = client.subscribe("t")
            reading = asyncio.create_task(taken(records, 1))
            await eventually(lambda: records.partitions)
            await records.close()
            assert await reading == []
            assert await records.next_batch() is None
            await eventually(lambda: not cluster.topics["t"].partitions[0].listeners)

    run(main())


def test_a_cancelled_reader_loses_nothing(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client), client.subscribe("t") as records:
            got: list[Record] = []
            for at in range(20):
                reading = asyncio.create_task(taken(records, 1))
                await asyncio.sleep(0)
                reading.cancel()
                await asyncio.wait([reading])
                got += [] if reading.cancelled() else reading.result()
                await client.publish("t", b"%d" % at)
            got += await taken(records, 20 - len(got))
            assert [one.offset for one in got] == list(range(20))

    run(main())


@pytest.mark.parametrize("seed", range(3))
def test_through_all_misfortune_readers_see_what_is_stored(run: Runner, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        async with talking(nodes=3, partitions=3, batch_bytes=400) as (cluster, client):
            partitions = cluster.topics["t"].partitions
            stopping = asyncio.Event()

            async def trouble() -> None:
                while not stopping.is_set():
                    await asyncio.sleep(chance.random() * 0.02)
                    chance.choice(cluster.nodes).cut()
                    chance.choice(partitions).leader = chance.choice([1, 2, 3])

            async with client.subscribe("t", start="earliest") as records:
                troubling = asyncio.create_task(trouble())
                reading = asyncio.create_task(taken(records, 900, within_s=60))
                await asyncio.gather(
                    *(
                        client.publish("t", b"%d" % at + bytes(100), partition=at % 3)
                        for at in range(900)
                    )
                )
                got = await reading
                stopping.set()
                await troubling
                assert dense(got)
                for number, one in enumerate(partitions):
                    mine = [record.value for record in got if record.partition == number]
                    assert mine == one.values()

    run(main())


def cluster_batch(values: list[bytes]) -> bytearray:
    from angarium.batch import encode

    return encode(values)


def test_a_time_in_the_future_finds_the_end(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            await client.publish("t", b"old")
            tomorrow = datetime.now(UTC) + timedelta(days=1)
            async with client.subscribe("t", start=tomorrow) as records:
                await client.publish("t", b"new")
                assert (await taken(records, 1))[0].value == b"new"

    run(main())
