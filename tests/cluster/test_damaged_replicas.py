"""Damage takes a replica, not a node: the others bring it back, and everybody is told."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness

from angarium.api import TopicConfig
from angarium.errors import AngariumError
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.faults import HEARD_S, own_values
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

PATIENCE_S = 60.0


def flip(path: Path, position: int) -> None:
    """Flip a bit of a file; a negative position counts from the end."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def snapshot_of_a_partition(data: Path) -> None:
    flip(max((data / "snapshots").glob("[1-9]*.snapshot")), -5)


def snapshot_of_the_catalog(data: Path) -> None:
    flip(next((data / "snapshots").glob("0-*.snapshot")), -5)


def every_snapshot(data: Path) -> None:
    for path in (data / "snapshots").glob("*.snapshot"):
        flip(path, -5)


def the_whole_log(data: Path) -> None:
    shutil.rmtree(data / "wal")


def the_middle_of_the_log(data: Path) -> None:
    path = min((data / "wal").glob("*.log"))
    flip(path, path.read_bytes().index(b"orders"))  # where the catalog was told of the topic


@pytest.mark.parametrize(
    "damage",
    [
        snapshot_of_a_partition,
        snapshot_of_the_catalog,
        every_snapshot,
        the_middle_of_the_log,
        the_whole_log,
    ],
)
def test_a_node_with_a_damaged_replica_gets_it_back_from_the_others(
    run: Run, cluster_of: ClusterOf, damage: Callable[[Path], None]
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, program=SMALL) as cluster:
            await cluster.create_topic("orders", partitions=2)
            hurt = await cluster.leader("orders")
            async with Load(cluster, topic="orders", partitions=2, pause_s=0.005) as load:
                for partition in (0, 1):
                    await load.acknowledged_after(now_micros(), partition=partition)
                cluster.nodes[hurt].kill()
                await load.acknowledged_after(now_micros())
                damage(cluster.nodes[hurt].data)
                cluster.restart(hurt)
                await cluster.back(hurt, within_s=PATIENCE_S)
                await cluster.settled(topics=["orders"], within_s=PATIENCE_S)

                async def is_ready() -> bool:
                    status = await cluster.contact(hurt).status()
                    return not any(one.unready for one in status.nodes if one.id == hurt)

                await eventually(is_ready, within_s=PATIENCE_S, what="the node is ready again")
                verdict = await load.conclude()
            assert verdict.violations == []
            # What was lost is its own again: a read through it might be passed on to others.
            own = [
                await own_values(cluster, hurt, "orders", partition=partition)
                for partition in (0, 1)
            ]
            assert sum(map(len, own)) == verdict.stored
            assert "damage" in cluster.nodes[hurt].log.read_text()

    run(scenario())


def test_single_flips_in_two_of_three_closed_logs_cost_no_replica_and_no_record(
    run: Run, cluster_of: ClusterOf
) -> None:
    """As tried from outside: one flip made a follower skip records, and say that it has them."""
    values = [b"value %04d" % number for number in range(400)]

    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            contact = cluster.contact(await cluster.leader("orders"))
            # Several publishes at a time, so that entries share sync rounds.
            for first in range(0, len(values), 20):
                await asyncio.gather(
                    *(contact.store("orders", 0, [one]) for one in values[first : first + 20])
                )
            await cluster.settled(topics=["orders"])
            await cluster.stop_all()
            for node, number in zip(cluster.ids, (130, 260), strict=False):
                path = next(
                    one
                    for one in sorted((cluster.nodes[node].data / "wal").glob("*.log"))
                    if values[number] in one.read_bytes()
                )
                flip(path, path.read_bytes().index(values[number]))
            for node in cluster.ids:
                cluster.restart(node)
            for node in cluster.ids:
                await cluster.back(node, within_s=PATIENCE_S)
                await cluster.ready(node, within_s=PATIENCE_S)
            await cluster.settled(topics=["orders"], within_s=PATIENCE_S)
            for node in cluster.ids:
                found = await own_values(cluster, node, "orders")
                assert sorted(one or b"" for one in found) == values
            logs = [cluster.nodes[node].log.read_text() for node in cluster.ids]
            # The damage is reported where it was found, and no replica was given up for it.
            assert sum("found damage" in one for one in logs) == 2
            assert sum("mended damage" in one for one in logs) == 2
            assert not any("lost a replica" in one for one in logs)

    run(scenario())


@pytest.mark.parametrize("lost", ["snapshots", "wal"])
def test_a_node_that_has_lost_its_catalog_is_found_by_the_others(
    run: Run, cluster_of: ClusterOf, lost: str
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            hurt = cluster.ids[2]
            process = cluster.nodes[hurt]
            await asyncio.sleep(HEARD_S * slowness())
            process.terminate()
            await asyncio.to_thread(process.wait)
            shutil.rmtree(process.data / lost)
            # Restarted as it was: nobody says where the others are, and with the catalog it has
            # lost what it knew of them.
            process.start()
            await cluster.back(hurt, within_s=PATIENCE_S)
            await cluster.ready(hurt, within_s=PATIENCE_S)
            await cluster.settled(topics=["orders"], within_s=PATIENCE_S)

    run(scenario())


def test_a_node_whose_log_was_lost_is_taken_for_no_older_copy_at_its_next_start(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            hurt = cluster.ids[2]
            leader = cluster.contact(await cluster.leader("orders"))
            for _ in range(200):  # its next log will hardly come so far
                await leader.store("orders", 0, [b"x"])
            # The others ask every second how far its log is.
            await asyncio.sleep(HEARD_S * slowness())
            for damage in (the_whole_log, lambda _: None):
                cluster.nodes[hurt].kill()
                damage(cluster.nodes[hurt].data)
                cluster.restart(hurt)
                await cluster.back(hurt, within_s=PATIENCE_S)
                await cluster.ready(hurt, within_s=PATIENCE_S)
                await cluster.settled(topics=["orders"], within_s=PATIENCE_S)
            assert cluster.running == cluster.ids
            assert await own_values(cluster, hurt, "orders") == [b"x"] * 200

    run(scenario())


@pytest.mark.parametrize("damage", [every_snapshot, the_whole_log, the_middle_of_the_log])
def test_a_single_node_says_what_is_damaged_and_what_to_do(
    run: Run, cluster_of: ClusterOf, damage: Callable[[Path], None]
) -> None:
    async def scenario() -> None:
        async with cluster_of(1) as cluster:
            (only,) = cluster.ids
            await cluster.create_topic("orders", config=TopicConfig(replication=1))
            cluster.nodes[only].kill()
            damage(cluster.nodes[only].data)
            cluster.restart(only)

            async def reasons() -> tuple[str, ...]:
                status = await cluster.contact(only).status()
                return tuple(reason for one in status.nodes for reason in one.unready)

            said = await eventually(reasons, within_s=PATIENCE_S, what="the node says why")
            assert any("damaged" in one and "backup" in one for one in said), said
            with pytest.raises(AngariumError, match="damaged"):
                await cluster.contact(only).describe("orders")

    run(scenario())
