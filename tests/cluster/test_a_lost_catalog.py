"""Most machines are gone for good, and the catalog's majority with them: what is left goes on."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import TYPE_CHECKING

from tests.cluster.command_line import angarium

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

QUICK = {"recover_after_s": 2}
CODE = re.compile(r"--confirm ([0-9a-f]{8})$", re.MULTILINE)
FOLLOW = re.compile(r"--follow (\S+)$", re.MULTILINE)
PARTITIONS = 2
WIDE = TopicConfig(replication=5)
RECORDS = 30


async def _command(folder: Path, *words: str, status: int | None = 0) -> str:
    done = await asyncio.to_thread(angarium, folder, *words, status=status)
    return done.stdout + done.stderr


async def _recovered(folder: Path, data: Path, *more: str) -> str:
    """Go on with what is in a folder, in both steps."""
    words = ("cluster", "recover-catalog", "--data", str(data), *more)
    looked = await _command(folder, *words)
    code = CODE.search(looked)
    assert code is not None, looked
    return await _command(folder, *words, "--confirm", code[1])


async def _values(client: Client, topic: str, partition: int) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while records := await client.fetch(topic, partition, offset, fresh=True):
        found += [bytes(record.value or b"") for record in records]
        offset = (records[-1].offset or 0) + 1
    return found


async def _recover_partitions(client: Client, topic: str) -> None:
    """Go on with what is left of every partition that lacks a majority."""
    for number in range(PARTITIONS):

        async def is_led(number: int = number) -> bool:
            try:
                info = await client.describe_recovery(topic, number)
                if "has a leader" in info.objection:
                    return True
                if not info.objection:
                    await client.recover_partition(topic, number, info.code)
            except AngariumError:
                return False
            return False

        await eventually(is_led, what=f"partition {number} goes on", within_s=60)


async def _whole(cluster: ProcessCluster, topic: str, count: int) -> None:
    """Wait until every partition has so many full replicas."""

    async def is_whole() -> bool:
        whole = set()
        for node in cluster.running:
            for one in (await cluster.contact(node).describe(topic, timeout_s=2.0)).partitions:
                if one.leader == node and len(one.in_sync or ()) == count:
                    whole.add(one.number)
        return whole == set(range(PARTITIONS))

    await eventually(is_whole, what=f"{count} full replicas everywhere", within_s=90)


async def _published(client: Client, topic: str, words: str) -> list[list[bytes]]:
    sent: list[list[bytes]] = []
    for number in range(PARTITIONS):
        values = [f"{words} {number} {one}".encode() for one in range(RECORDS)]
        for value in values:
            await client.publish(topic, value, partition=number)
        sent.append(values)
    return sent


def test_one_of_three_disks_goes_on_as_a_cluster_and_the_dead_are_refused(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, settings=QUICK) as cluster:
            await cluster.create_topic("orders", partitions=PARTITIONS)
            survivor, *dead = cluster.ids
            data = cluster.nodes[survivor].data
            addresses = [one.address for one in cluster.nodes.values()]
            async with Client(*addresses) as running:
                sent = await _published(running, "orders", "before")
                await _whole(cluster, "orders", 3)
                old = (await running.cluster_status()).cluster_id
                for one in dead:
                    cluster.nodes[one].kill()
                kept = tmp_path / "kept"
                shutil.copytree(cluster.nodes[dead[0]].data, kept)

                async def is_told() -> bool:
                    said = await _command(
                        tmp_path, "cluster", "status", "--servers", addresses[0], status=None
                    )
                    return "the catalog has 1 of 3 voters" in said and "lost-majority" in said

                await eventually(is_told, what="the status says what is lost", within_s=30)
                in_use = await _command(
                    tmp_path, "cluster", "recover-catalog", "--data", str(data), status=None
                )
                assert "is in use by" in in_use
                cluster.nodes[survivor].kill()
                cluster.nodes[survivor].wait()
                done = await _recovered(tmp_path, data)
                assert FOLLOW.search(done)
                for one in dead:
                    cluster.nodes[one].wipe()
                cluster.restart(survivor)
                await cluster.back(survivor)
                await _recover_partitions(running, "orders")
                # The client that was there all the time goes on.
                after = await _published(running, "orders", "after")
                status = await running.cluster_status()
                assert status.cluster_id != old
                for number in range(PARTITIONS):
                    expected = [*sent[number], *after[number]]
                    assert await _values(running, "orders", number) == expected

                # A machine that was lost comes back with its old disk.
                returned = cluster.nodes[dead[0]]
                shutil.copytree(kept, returned.data, dirs_exist_ok=True)
                cluster.restart(dead[0])
                await eventually(_ended(cluster, dead[0]), what="the dead is refused")
                assert f"was recovered as {status.cluster_id}" in returned.last_words()
                cluster.restart(dead[0])
                await eventually(_ended(cluster, dead[0]), what="and refused again")
                assert "succeeded" in returned.last_words()

                # It follows with its disk after all, and another one is new.
                follow = FOLLOW.search(done)
                assert follow is not None
                await _recovered(tmp_path, returned.data, "--follow", follow[1])
                cluster.restart(dead[0])
                del cluster.nodes[dead[1]]
                await cluster.add()
                await _whole(cluster, "orders", 3)
                for number in range(PARTITIONS):
                    expected = [*sent[number], *after[number]]
                    assert await _values(running, "orders", number) == expected
                await _command(
                    tmp_path, "cluster", "remove", str(dead[1]), "--servers", addresses[0]
                )

    run(scenario())


def test_two_of_five_disks_go_on_and_the_one_with_less_follows(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with cluster_of(5, settings={**QUICK, "catalog_voters": 5}) as cluster:
            await cluster.create_topic("orders", partitions=PARTITIONS, config=WIDE)
            left, dead = cluster.ids[:2], cluster.ids[2:]
            async with Client(*(one.address for one in cluster.nodes.values())) as client:
                sent = await _published(client, "orders", "before")
                await _whole(cluster, "orders", 5)
                cluster.nodes[left[1]].kill()  # from here on it lacks what the catalog has
                await client.create_topic("late", partitions=1)
                for one in (*dead, left[0]):
                    cluster.nodes[one].kill()
                    cluster.nodes[one].wait()
                folders = {one: cluster.nodes[one].data for one in left}
                ends = {one: await _end(tmp_path, folders[one]) for one in left}
                refused = await _command(
                    *(tmp_path, "cluster", "recover-catalog", "--data", str(folders[left[1]])),
                    *("--other", ends[left[0]]),
                    status=1,
                )
                assert "which has more" in refused
                done = await _recovered(tmp_path, folders[left[0]], "--other", ends[left[1]])
                follow = FOLLOW.search(done)
                assert follow is not None
                await _recovered(tmp_path, folders[left[1]], "--follow", follow[1])
                for one in left:
                    cluster.restart(one)
                for one in left:
                    await cluster.back(one)
                await _recover_partitions(client, "orders")
                after = await _published(client, "orders", "after")
                assert "late" in [one.name for one in await client.list_topics()]
                for number in range(PARTITIONS):
                    expected = [*sent[number], *after[number]]
                    assert await _values(client, "orders", number) == expected

                # A lost machine comes back under its id, with an empty disk. Where it may have had
                # the only replica that is left of something, it would be refused.
                await client.delete_topic("late")
                cluster.nodes[dead[0]].wipe()
                cluster.restart(dead[0])
                await cluster.back(dead[0])
                await _whole(cluster, "orders", 3)

    run(scenario())


async def _end(folder: Path, data: Path) -> str:
    said = await _command(folder, "cluster", "recover-catalog", "--data", str(data))
    found = re.search(r"catalog ends at (\d+\.\d+)", said)
    assert found is not None, said
    return found[1]


def _ended(cluster: ProcessCluster, node: NodeId) -> Callable[[], Awaitable[bool]]:
    async def ended() -> bool:
        return not cluster.nodes[node].is_running

    return ended
