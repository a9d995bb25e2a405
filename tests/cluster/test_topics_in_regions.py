"""Two regions of three nodes each: homed partitions, copies to read from, a region that is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.api import TopicConfig
from angarium.batch import Batch
from angarium.client import Client
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.ids import Offset
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.api import PartitionInfo
    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

pytestmark = pytest.mark.timeout(600)

WAIT_S = 180.0
"""Six processes on a busy machine take their time."""

FULL_MICROS = 5_000_000

HOMED = TopicConfig(placement="homed", regions=("eu", "us"), readers=("*",), replication=3)


def _in(cluster: ProcessCluster, region: str) -> set[NodeId]:
    return {one for one, node in cluster.nodes.items() if node.region == region}


async def _lives_in(cluster: ProcessCluster, topic: str, homes: tuple[str, ...]) -> None:
    """Wait until each partition is led and held in its home, and read from the other region."""

    def is_there(one: PartitionInfo, home: str) -> bool:
        mine = _in(cluster, home)
        others = set(cluster.nodes) - mine
        return (
            one.home == home
            and set(one.replicas) == mine
            and one.leader in mine
            and len(one.readers) == 1
            and set(one.readers) < others
        )

    async def all_are() -> bool:
        info = await (await cluster.someone()).describe(topic)
        return all(is_there(one, homes[one.number % len(homes)]) for one in info.partitions)

    await eventually(all_are, within_s=WAIT_S, what=f"{topic} lives in {homes}")
    await cluster.settled(topics=[topic], within_s=WAIT_S)


async def _read_at(cluster: ProcessCluster, node: NodeId, topic: str, number: int) -> list[bytes]:
    """Return what a node's own copy holds."""
    fetched = await cluster.contact(node).fetch(topic, number, Offset(0))
    records = [record for one in fetched.batches for record in Batch.parse(one)]
    return [bytes(one.value or b"") for one in records]


def test_a_homed_topic_is_read_elsewhere_survives_a_region_and_moves(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        regions = ("eu", "us") * 3
        async with cluster_of(6, regions=regions) as cluster:
            info = await cluster.create_topic("orders", partitions=2, config=HOMED)
            assert "1 without eu, 1 without us" in info.caution
            await _lives_in(cluster, "orders", ("eu", "us"))
            await cluster.create_topic("slips", partitions=2, config=HOMED)
            for number in range(2):
                values = [b"%d" % one for one in range(20)]
                async with Client(cluster.nodes[cluster.ids[0]].address) as client:
                    await client.publish_batch("slips", values, partition=number)
                info = await (await cluster.someone()).describe("slips")
                (reader,) = info.partitions[number].readers

                async def is_copied(
                    reader: NodeId = reader, number: int = number, values: list[bytes] = values
                ) -> bool:
                    return await _read_at(cluster, reader, "slips", number) == values

                await eventually(is_copied, within_s=WAIT_S, what="a reader has everything")
            async with Load(cluster, topic="orders", partitions=2, producers=4) as load:
                # A copy stands for its partition once it has heard of it for a second or two; until
                # then its node asks the leader.
                await load.acknowledged_after(now_micros() + FULL_MICROS, within_s=WAIT_S)
                lost = _in(cluster, "us")
                for node in lost:
                    cluster.nodes[node].kill()
                # What is homed in the other region goes on, and what was homed in this one can be
                # read where it has its readers.
                await load.acknowledged_after(now_micros(), partition=0, within_s=WAIT_S)
                (reader,) = info.partitions[1].readers
                assert len(await _read_at(cluster, reader, "slips", 1)) == 20

                async def is_told() -> bool:
                    told = (await cluster.contact(reader).describe("slips")).partitions[1]
                    return told.leader is None and "has 0 of 3 replicas" in told.trouble

                await eventually(is_told, within_s=WAIT_S, what="a lost home is told")
                assert not [
                    one
                    for one in (await cluster.contact(reader).status()).nodes
                    if one.id == reader and one.unready
                ]
                for node in lost:
                    cluster.restart(node)
                for node in lost:
                    await cluster.back(node, within_s=WAIT_S)
                await load.acknowledged_after(now_micros(), partition=1, within_s=WAIT_S)
                async with Client(cluster.nodes[cluster.ids[0]].address) as client:
                    other = TopicConfig(
                        placement="homed", regions=("us", "eu"), readers=("*",), replication=3
                    )
                    await client.alter_topic("orders", config=other)
                await _lives_in(cluster, "orders", ("us", "eu"))
                for number in range(2):
                    await load.acknowledged_after(now_micros(), partition=number, within_s=WAIT_S)
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_a_spread_topic_survives_the_region_it_is_led_in_and_goes_back(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, regions=("as", "eu", "us")) as cluster:
            config = TopicConfig(replication=3, regions=("us", "eu"))
            info = await cluster.create_topic("orders", partitions=2, config=config)
            assert info.caution == ""
            (preferred,) = _in(cluster, "us")
            assert {one.replicas[0] for one in info.partitions} == {preferred}
            async with Load(cluster, topic="orders", partitions=2, producers=4) as load:
                cluster.nodes[preferred].kill()
                for number in range(2):
                    await load.acknowledged_after(now_micros(), partition=number, within_s=WAIT_S)

                async def is_led_in_the_next() -> bool:
                    told = await (await cluster.someone()).describe("orders")
                    return {one.leader for one in told.partitions} == _in(cluster, "eu")

                await eventually(is_led_in_the_next, within_s=WAIT_S, what="eu leads")
                cluster.restart(preferred)
                await cluster.back(preferred, within_s=WAIT_S)

                async def is_led_again() -> bool:
                    told = await (await cluster.someone()).describe("orders")
                    return {one.leader for one in told.partitions} == {preferred}

                await eventually(is_led_again, within_s=WAIT_S, what="us leads again")
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_what_cannot_hold_is_refused_and_a_new_region_gets_readers(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with (
            cluster_of(3, regions=("eu", "eu", "eu", "us")) as cluster,
            Client(cluster.nodes[cluster.ids[0]].address) as client,
        ):
            for config, error, said in (
                (TopicConfig(placement="homed"), InvalidArgument, "needs `regions`"),
                (TopicConfig(placement="homed", regions=("us",)), PreconditionFailed, "'us'"),
                (TopicConfig(readers=("us",)), PreconditionFailed, "no node is in region 'us'"),
            ):
                with pytest.raises(error, match=said):
                    await client.create_topic("orders", config=config)
            wish = TopicConfig(placement="homed", regions=("eu",), readers=("*",))
            await client.create_topic("orders", partitions=2, config=wish)
            await client.publish_batch("orders", [b"one"], partition=1)
            newcomer = await cluster.add()

            async def reads() -> bool:
                info = await client.describe_topic("orders")
                return all(one.readers == (newcomer,) for one in info.partitions) and (
                    await _read_at(cluster, newcomer, "orders", 1) == [b"one"]
                )

            await eventually(reads, within_s=WAIT_S, what="the new region reads")
            await client.drain_node(newcomer)

            async def is_empty() -> bool:
                info = await client.describe_topic("orders")
                return not any(one.readers for one in info.partitions)

            await eventually(is_empty, within_s=WAIT_S, what="nothing is left to read there")
            await client.remove_node(newcomer)

    run(scenario())
