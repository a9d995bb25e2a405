"""Programs and leaders are killed in the middle of writing; what is written is exactly right."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import TYPE_CHECKING

import uvloop
from tests.delivery.numbering_worker import TOPIC
from tests.delivery.transfer_worker import GROUP, INPUT, OUTPUT, image

from angarium import Client
from angarium.testing.cluster import ProcessCluster, eventually

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Coroutine
    from pathlib import Path
    from typing import Any

WORKERS = 3
RECORDS = 2_000
LINES = 800
KILLS = 5
LEADER_KILLS = (1, 3)


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


async def program(module: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", module, *arguments)


async def values(client: Client, topic: str) -> list[bytes]:
    return [record.value or b"" async for record in client.read(topic)]


def test_a_topic_is_transformed_exactly_once_through_kills_of_everybody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ProcessCluster(tmp_path / "cluster", nodes=3) as cluster:
            addresses = [cluster.nodes[node].address for node in cluster.ids]
            async with Client(*addresses) as client:
                await cluster.create_topic(INPUT, partitions=2)
                await cluster.create_topic(OUTPUT, partitions=3)
                expected = [str(number).encode() for number in range(RECORDS)]
                await client.publish_batch(INPUT, expected, keys=expected)
                await transfer(cluster, addresses, client)
                found = await values(client, OUTPUT)
                assert sorted(found) == sorted(map(image, expected))

    run(scenario())


async def transfer(cluster: ProcessCluster, addresses: list[str], client: Client) -> None:
    """Let workers move everything while they, and leaders, are killed again and again."""
    rng = random.Random(7)
    joined = ",".join(addresses)
    workers = {
        f"worker {one}": await program("tests.delivery.transfer_worker", f"worker {one}", joined)
        for one in range(WORKERS)
    }
    try:
        moved = 0

        async def goes_on() -> bool:
            return await count(client) > moved

        for kill in range(KILLS):
            moved = await count(client)
            if moved == RECORDS:
                break
            await eventually(goes_on, within_s=60.0, what="records are moved")
            if kill in LEADER_KILLS:
                leader = await cluster.leader(rng.choice((INPUT, OUTPUT)))
                cluster.nodes[leader].kill()
                cluster.restart(leader)
                await cluster.back(leader)
            name = rng.choice(sorted(workers))
            workers[name].kill()
            await workers[name].wait()
            workers[name] = await program("tests.delivery.transfer_worker", name, joined)

        async def is_done() -> bool:
            return await count(client) == RECORDS

        await eventually(is_done, within_s=120.0, what="everything is moved")
    finally:
        for worker in workers.values():
            if worker.returncode is None:
                worker.kill()
            await worker.wait()
    assert GROUP.startswith("angarium.")


async def count(client: Client) -> int:
    return len(await values(client, OUTPUT))


def test_numbered_lines_are_stored_once_by_a_program_that_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ProcessCluster(tmp_path / "cluster", nodes=3) as cluster:
            addresses = [cluster.nodes[node].address for node in cluster.ids]
            async with Client(*addresses) as client:
                await cluster.create_topic(TOPIC, partitions=3)
                for kill in range(KILLS):
                    before = len(await values(client, TOPIC))
                    writer = await write(addresses)

                    async def goes_on(before: int = before) -> bool:
                        there = len(await values(client, TOPIC))
                        return there > min(before + 50, LINES - 1)

                    try:
                        await eventually(goes_on, within_s=60.0, what="lines are written")
                        if kill == LEADER_KILLS[0]:
                            leader = await cluster.leader(TOPIC)
                            cluster.nodes[leader].kill()
                            cluster.restart(leader)
                            await cluster.back(leader)
                    finally:
                        if writer.returncode is None:
                            writer.kill()
                        await writer.wait()
                last = await write(addresses)
                async with asyncio.timeout(120):
                    assert await last.wait() == 0
                found = await values(client, TOPIC)
                assert sorted(map(int, found)) == list(range(LINES))

    run(scenario())


async def write(addresses: list[str]) -> Process:
    return await program(
        "tests.delivery.numbering_worker", "importer", str(LINES), ",".join(addresses)
    )
