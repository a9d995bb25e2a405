"""Publishing while nothing goes wrong: batches, partitions, order, receipts, bounds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_broker import fake_cluster
from tests.component.client.harness import settings, talking
from tests.on_a_loop import eventually

from angarium.api import TopicConfig
from angarium.batch import Batch, Codec, key_hash
from angarium.client import Client
from angarium.errors import InvalidArgument, LimitExceeded, NotFound, TooLarge
from angarium.modes import DeliveryMode
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from tests.component.wire.running import Runner


def test_a_publish_returns_where_its_record_is(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            first = await client.publish("t", b"one", key=b"k", headers={"a": b"1", "b": None})
            second = await client.publish("t", "zwei", key="k", headers=[("a", "x")])
            assert (first.offset, second.offset) == (0, 1)
            assert (first.topic, first.partition, first.mode) == ("t", 0, DeliveryMode.CONSISTENT)
            assert not first.is_provisional
            assert first.append_time is not None
            one, two = cluster.topics["t"].partitions[0].records()
            assert (one.key, one.value, one.headers) == (b"k", b"one", (("a", b"1"), ("b", None)))
            assert (two.key, two.value, two.headers) == (b"k", b"zwei", (("a", b"x"),))

    run(main())


def test_times_are_given_as_numbers_dates_or_distances(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            moment = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
            await client.publish("t", b"", timestamp=7, expires_at=moment)
            await client.publish("t", b"", deliver_at=timedelta(hours=1))
            with pytest.raises(InvalidArgument, match="time zone"):
                await client.publish("t", b"", timestamp=datetime(2031, 1, 1))
            one, two = cluster.topics["t"].partitions[0].records()
            assert (one.timestamp, one.expires_at) == (7, int(moment.timestamp() * 10**6))
            assert two.deliver_at > datetime.now(UTC).timestamp() * 10**6

    run(main())


def test_sixty_concurrent_publishes_need_few_requests_and_stay_in_order(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"first")
            values = [b"%d" % number for number in range(60)]
            receipts = await asyncio.gather(*(client.publish("t", value) for value in values))
            assert [receipt.offset for receipt in receipts] == list(range(1, 61))
            assert cluster.topics["t"].partitions[0].values() == [b"first", *values]
            assert cluster.batches_published <= 3

    run(main())


def test_records_gather_while_a_batch_is_on_its_way(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.latency_s = 0.02

            async def worker(name: int) -> None:
                for number in range(5):
                    await client.publish("t", b"%d-%d" % (name, number))

            await asyncio.gather(*map(worker, range(60)))
            values = cluster.topics["t"].partitions[0].values()
            assert len(values) == len(set(values)) == 300
            for name in range(60):
                mine = [value for value in values if value and value.startswith(b"%d-" % name)]
                assert mine == [b"%d-%d" % (name, number) for number in range(5)]
            assert cluster.batches_published <= 15

    run(main())


def test_full_batches_do_not_wait_for_the_ones_before(run: Runner) -> None:
    async def main() -> None:
        async with talking(batch_bytes=1_000) as (cluster, client):
            await client.publish("t", b"")
            cluster.latency_s = 3_600
            for _ in range(100):
                client.publish_nowait("t", bytes(100))
            await eventually(lambda: cluster.batches_published == 6)
            cluster.nodes[0].cut()
            cluster.latency_s = 0
            await client.flush()
            assert len(cluster.topics["t"].partitions[0].values()) == 101

    run(main())


def test_a_key_always_takes_its_partition_and_others_take_turns(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=4, nodes=2) as (cluster, client):
            partitions = cluster.topics["t"].partitions
            for number in range(32):
                key = b"key-%d" % (number % 8)
                receipt = await client.publish("t", b"", key=key)
                assert receipt.partition == key_hash(key) % 4
            turns = [(await client.publish("t", b"")).partition for _ in range(8)]
            assert sorted(turns) == sorted([0, 1, 2, 3] * 2)
            assert (await client.publish("t", b"here", partition=2)).partition == 2
            assert partitions[2].values()[-1] == b"here"
            with pytest.raises(NotFound, match="partitions 0 to 3"):
                await client.publish("t", b"", partition=4)

    run(main())


def test_programs_that_publish_one_record_each_do_not_meet_in_one_partition(run: Runner) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            cluster.add_topic("t", partitions=8)
            chosen = set()
            for _ in range(12):
                async with Client(*cluster.addresses, settings=settings()) as client:
                    chosen.add((await client.publish("t", b"")).partition)
            assert len(chosen) > 1

    run(main())


def test_a_batch_of_many_records_is_cut_and_dealt_out_by_key(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=3, nodes=2, batch_bytes=10_000) as (cluster, client):
            keys = [None if number % 10 == 0 else b"k%d" % (number % 7) for number in range(2_000)]
            values = [b"%06d" % number * 10 for number in range(2_000)]
            acks = await client.publish_batch("t", values, keys=keys, timestamps=5)
            stored = [one.records() for one in cluster.topics["t"].partitions]
            assert sum(map(len, stored)) == 2_000
            assert sum((ack.next_offset or 0) - (ack.base_offset or 0) for ack in acks) == 2_000
            assert len(acks) > 10
            for partition, records in enumerate(stored):
                keyed = [record for record in records if record.key is not None]
                assert {key_hash(record.key) % 3 for record in keyed} <= {partition}
                assert [record.value for record in keyed] == sorted(
                    record.value or b"" for record in keyed
                )
                assert {record.timestamp for record in records} == {5}

    run(main())


def test_a_batch_keeps_nulls_headers_and_columns_of_times(run: Runner) -> None:
    async def main() -> None:
        async with talking(codec=Codec.LZ4) as (cluster, client):
            await client.publish_batch(
                "t",
                [b"a" * 100, None, b"c"],
                headers=[{"h": b"1"}, None, [("h", None)]],
                timestamps=[1, 2, 3],
                deliver_at=[4, 5, 6],
                mode=DeliveryMode.EVENTUAL,
            )
            records = cluster.topics["t"].partitions[0].records()
            assert [record.value for record in records] == [b"a" * 100, None, b"c"]
            assert [record.headers for record in records] == [(("h", b"1"),), (), (("h", None),)]
            assert [record.timestamp for record in records] == [1, 2, 3]
            assert [record.deliver_at for record in records] == [4, 5, 6]

    run(main())


def test_columns_of_unequal_length_are_refused(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            with pytest.raises(InvalidArgument, match="2 keys were given for 1 values"):
                await client.publish_batch("t", [b""], keys=[b"", b""])
            assert await client.publish_batch("t", []) == ()

    run(main())


def test_values_that_are_no_bytes_are_refused_and_hold_up_nobody(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            with pytest.raises(TypeError):
                await client.publish("t", 7)  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                await client.publish_batch("t", [7])  # type: ignore[list-item]
            await client.publish("t", b"fine")
            assert cluster.topics["t"].partitions[0].values() == [b"fine"]
            assert client.buffered_bytes == 0

    run(main())


def test_what_is_published_without_waiting_is_there_after_a_flush(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=2) as (cluster, client):
            for number in range(1_000):
                client.publish_nowait("t", b"%d" % number, key=b"same")
            await client.flush()
            (stored,) = [one.values() for one in cluster.topics["t"].partitions if one.end]
            assert stored == [b"%d" % number for number in range(1_000)]
            await client.flush()

    run(main())


def test_flush_tells_what_failed_unheard(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            client.publish_nowait("nowhere", b"")
            client.publish_nowait("nowhere", b"")
            with pytest.raises(NotFound) as failed:
                await client.flush()
            assert "2 records" in failed.value.__notes__[0]
            assert client.buffered_bytes == 0
            await client.flush()

    run(main())


def test_at_the_bound_publish_waits_and_publish_nowait_is_refused(run: Runner) -> None:
    async def main() -> None:
        async with talking(buffered_bytes_max=10_000) as (cluster, client):
            await client.publish("t", b"")
            cluster.latency_s = 0.05
            waiting = [asyncio.create_task(client.publish("t", bytes(4_000))) for _ in range(6)]
            await eventually(lambda: client.buffered_bytes >= 10_000)
            with pytest.raises(LimitExceeded) as refused:
                client.publish_nowait("t", b"")
            assert refused.value.limit == "buffered_bytes_max"
            await asyncio.gather(*waiting)
            assert client.buffered_bytes == 0
            client.publish_nowait("t", b"")
            await client.flush()

    run(main())


def test_a_record_too_large_for_a_batch_is_refused_before_it_is_sent(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.add_topic("small", config=TopicConfig(batch_bytes_max=10_000))
            for attempt in (client.publish, lambda t, v: client.publish_batch(t, [v])):
                with pytest.raises(TooLarge, match=r"^batch_bytes_max: .* fits no batch"):
                    await attempt("small", bytes(20_000))
            await client.publish("small", bytes(1_000))
            assert client.buffered_bytes == 0
            assert cluster.topics["small"].partitions[0].end == 1

    run(main())


def test_modes_may_be_mixed_and_performance_takes_no_place(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            modes = [DeliveryMode.CONSISTENT, DeliveryMode.PERFORMANCE, DeliveryMode.EVENTUAL] * 5
            receipts = await asyncio.gather(
                *(client.publish("t", b"%d" % at, mode=mode) for at, mode in enumerate(modes))
            )
            assert [receipt.mode for receipt in receipts] == modes
            stored = [b"%d" % at for at, mode in enumerate(modes) if mode != 2]
            assert cluster.topics["t"].partitions[0].values() == stored
            assert [receipt.offset for receipt in receipts if receipt.mode == 2] == [None] * 5
            assert all(receipt.is_provisional for receipt in receipts if receipt.mode == 1)

    run(main())


def test_a_topics_own_mode_is_used_where_none_is_given(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.add_topic("fast", config=TopicConfig(mode=DeliveryMode.PERFORMANCE))
            assert (await client.publish("fast", b"")).mode is DeliveryMode.PERFORMANCE
            await client.publish("fast", b"kept", mode=DeliveryMode.CONSISTENT)
            assert cluster.topics["fast"].partitions[0].values() == [b"kept"]

    run(main())


def test_a_cluster_may_make_the_topic_on_the_first_publish(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            with pytest.raises(NotFound):
                await client.publish("new", b"")
            with pytest.raises(NotFound):
                await client.describe_topic("newer", or_new=True)
            cluster.auto_create = True
            assert (await client.publish("new", b"x")).offset == 0
            assert cluster.topics["new"].partitions[0].values() == [b"x"]
            with pytest.raises(NotFound):
                await client.describe_topic("newer")
            assert (await client.describe_topic("newer", or_new=True)).name == "newer"

    run(main())


def test_idempotence_can_be_left_out(run: Runner) -> None:
    async def main() -> None:
        async with talking(idempotent=False) as (cluster, client):
            await client.publish("t", b"x")
            assert Operation.OPEN_PRODUCER not in cluster.nodes[0].requests
            (batch,) = cluster.topics["t"].partitions[0].batches
            assert Batch.trusted(batch).producer_id == 0

    run(main())


def test_publishers_learn_of_new_partitions(run: Runner) -> None:
    async def main() -> None:
        async with talking(refresh_s=0.01) as (cluster, client):
            await client.publish("t", b"")
            await client.alter_topic("t", partitions=4)
            turns = {(await client.publish("t", b"")).partition for _ in range(8)}
            assert turns == {0, 1, 2, 3}
            cluster.topics["t"].partitions += [type(cluster.topics["t"].partitions[0])(leader=1)]
            async with asyncio.timeout(60):
                while (await client.publish("t", b"")).partition != 4:
                    pass

    run(main())
