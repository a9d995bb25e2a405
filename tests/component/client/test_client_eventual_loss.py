"""EVENTUAL records that a dead leader took with it: noticed, counted, reported, and gone past."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.component.client.fake_faults import drop_before
from tests.component.client.harness import settings, talking

from angarium.batch import Batch
from angarium.client import Client, Loss
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

EVENTUAL = DeliveryMode.EVENTUAL


def test_a_lost_suffix_is_counted_and_a_new_identity_taken(run: Runner) -> None:
    async def main() -> None:
        losses: list[Loss] = []
        async with talking(nodes=2) as (cluster, _):
            partition = cluster.topics["t"].partitions[0]
            async with Client(
                *cluster.addresses, settings=settings(), on_loss=losses.append
            ) as client:
                for number in range(10):
                    await client.publish("t", b"%d" % number, mode=EVENTUAL)
                partition.lose_from(6)
                partition.leader = 2
                receipt = await client.publish("t", b"next", mode=EVENTUAL)
                assert receipt.offset == 6
                assert client.lost_records == 4
                assert losses == [Loss(topic="t", partition=0, records=4, first_offset=Offset(6))]
                await client.publish("t", b"more", mode=EVENTUAL)
                assert client.lost_records == 4
            kept = [b"%d" % number for number in range(6)]
            assert partition.values() == [*kept, b"next", b"more"]
            producers = {Batch.trusted(one).producer_id for one in partition.batches}
            assert len(producers) == 2

    run(main())


def test_only_the_lane_that_lost_something_changes_its_identity(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2, partitions=2, producer="named") as (cluster, client):
            one, two = cluster.topics["t"].partitions
            for at in (0, 1, 0, 1):
                await client.publish("t", b"", partition=at, mode=EVENTUAL)
            one.lose_from(1)
            for at in (0, 1):
                await client.publish("t", b"", partition=at, mode=EVENTUAL)
            assert [Batch.trusted(batch).epoch for batch in one.batches] == [0, 1]
            assert [Batch.trusted(batch).epoch for batch in two.batches] == [0, 0, 0]
            assert client.lost_records == 1

    run(main())


def test_what_was_on_its_way_during_a_loss_is_stored_once(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2, batch_bytes=200) as (cluster, client):
            partition = cluster.topics["t"].partitions[0]
            for number in range(5):
                await client.publish("t", b"old%d" % number, mode=EVENTUAL)
            partition.lose_from(3)
            # Sent, and nobody knows what became of it: but behind a loss it cannot be stored.
            cluster.plan(Operation.PUBLISH, drop_before, drop_before)
            new = [b"%03d" % number * 30 for number in range(20)]
            await asyncio.gather(*(client.publish("t", value) for value in new))
            assert partition.values() == [b"old0", b"old1", b"old2", *new]
            assert client.lost_records == 2

    run(main())


def test_a_committed_record_settles_the_provisional_ones_before_it(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"1", mode=EVENTUAL)
            await client.publish("t", b"2")
            await client.publish("t", b"3", mode=EVENTUAL)
            cluster.topics["t"].partitions[0].lose_from(2)
            await client.publish("t", b"4")
            assert client.lost_records == 1
            assert cluster.topics["t"].partitions[0].values() == [b"1", b"2", b"4"]

    run(main())


def test_a_topic_made_anew_under_the_same_name_is_no_loss_of_committed_records(
    run: Runner,
) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            for _ in range(3):
                await client.publish("t", b"old")
            cluster.topics["t"].partitions[0].lose_from(0)
            assert (await client.publish("t", b"new")).offset == 0
            assert client.lost_records == 0

    run(main())
