"""Partitions are added while leaders are killed: no key is read out of order, and none is lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.cluster.keyed_order import Seen, publish_all

from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

pytestmark = pytest.mark.timeout(600)

WAIT_S = 180.0
KEYS = [f"key-{number}".encode() for number in range(16)]
PATIENT = ClientSettings(request_timeout_s=120.0, publish_timeout_s=120.0)


@pytest.mark.parametrize("kind", ["key", "stream"])
def test_no_key_is_read_out_of_order_though_leaders_die_meanwhile(
    kind: str, run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("t", partitions=2)
            addresses = [one.address for one in cluster.nodes.values()]
            async with (
                asyncio.timeout(3 * WAIT_S),
                Client(*addresses, settings=PATIENT) as one,
                Client(*addresses, settings=PATIENT) as two,
                Client(*addresses, settings=PATIENT) as reading,
            ):
                await _read_while_it_grows(cluster, (one, two), reading, kind)

    run(scenario())


async def _read_while_it_grows(
    cluster: ProcessCluster, publishers: tuple[Client, Client], reading: Client, kind: str
) -> None:
    plain, grouped, stop = Seen(), Seen(), asyncio.Event()

    async def read_plainly() -> None:
        async with reading.subscribe("t", start="earliest") as subscription:
            async for record in subscription:
                plain.take(record)

    async def read_in_a_group() -> None:
        async with reading.group("g", kind=kind).consume("t") as consumer:
            async for record in consumer:
                grouped.take(record)
                record.ack_nowait()

    async with asyncio.TaskGroup() as tasks:
        publishing = [
            tasks.create_task(publish_all(client, KEYS[at::2], stop))
            for at, client in enumerate(publishers)
        ]
        readers = [tasks.create_task(read_plainly()), tasks.create_task(read_in_a_group())]
        await eventually(lambda: _reached(grouped, 100), within_s=WAIT_S)
        # Who leads a partition that has yet to get its fence, and who tells the catalog of them.
        await _add_while_one_dies(cluster, reading, 4, await cluster.leader("t"))
        await _add_while_one_dies(cluster, reading, 6, await cluster.catalog_leader())
        more = grouped.records + 100
        await eventually(lambda: _reached(grouped, more), within_s=WAIT_S)
        stop.set()
        total = sum([sum((await task).values()) for task in publishing])
        await eventually(lambda: _reached(plain, total), within_s=WAIT_S)
        await eventually(lambda: _reached(grouped, total), within_s=WAIT_S)
        for task in readers:
            task.cancel()
    info = await reading.describe_topic("t")
    assert info.layouts == (2, 4, 6)
    assert info.layout == 2
    assert all(one.end_offset for one in info.partitions)


async def _reached(seen: Seen, count: int) -> bool:
    return seen.records >= count


async def _add_while_one_dies(
    cluster: ProcessCluster, client: Client, partitions: int, dying: NodeId
) -> None:
    """Give the topic partitions, and kill a node as soon as the catalog has decided it."""

    async def add() -> None:
        while len((await client.describe_topic("t")).partitions) < partitions:
            with suppress(AngariumError):  # the one who was asked is dead, or fences are being set
                await client.alter_topic("t", partitions=partitions)

    async def is_decided() -> bool:
        with suppress(AngariumError):
            return len((await client.describe_topic("t")).partitions) == partitions
        return False

    adding = asyncio.create_task(add())
    await eventually(is_decided, within_s=WAIT_S)
    cluster.nodes[dying].kill()
    await adding
    assert await cluster.catalog_leader() != dying
    cluster.restart(dying)
    await cluster.back(dying, within_s=WAIT_S)

    async def is_in_force() -> bool:
        info = await client.describe_topic("t")
        return info.layout == len(info.layouts) - 1

    await eventually(is_in_force, within_s=WAIT_S, what="every partition has its fence")
