"""The guides for when machines are gone, as printed: one of them, and a majority."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.command_line import COMMAND, angarium, environment

from angarium.client import Client
from angarium.ids import NodeId
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import NodeProcess

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
PRINTED = re.compile(r"^    \$ (?:\w+=\S+ )?angarium (.+)$", re.MULTILINE)
CODE = re.compile(r"--confirm ([0-9a-f]{8})$", re.MULTILINE)
NOT_NOW = 1
LOST = NodeId(3)
"""The node that the guide replaces."""


def _printed(guide: str) -> list[list[str]]:
    """Return the commands of a guide, word by word, without what they set in the environment."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    return [one.split() for one in PRINTED.findall(text)]


def _started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a node on another machine, under the id of the lost one."""
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=environment() | {"ANGARIUM_NODE_ID": str(LOST)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def _run(folder: Path, server: str, *words: str, status: int | None = 0) -> str:
    told = await asyncio.to_thread(angarium, folder, *words, "--servers", server, status=status)
    return told.stdout


def test_what_the_guide_prints_brings_a_partition_back_whose_majority_is_lost(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    look, confirm, *_ = _printed("lost-majority.md")
    topic, partition = look[-2], int(look[-1])
    settings = {"recover_after_s": 2, "catalog_voters": 5}

    async def scenario() -> None:
        async with cluster_of(5, settings=settings) as cluster:
            await cluster.create_topic(topic, partitions=partition + 1)
            async with Client(cluster.nodes[cluster.ids[0]].address) as client:
                found = (await client.describe_topic(topic)).partitions[partition]
            survivor, *dead = found.replicas
            server = cluster.nodes[survivor].address
            async with Client(server) as client:
                for number in range(20):
                    await client.publish(topic, b"%d" % number, partition=partition)
                refused = await _run(tmp_path, server, *look, status=NOT_NOW)
                assert "Nothing can be recovered" in refused
                for one in dead:
                    cluster.nodes[one].kill()

                async def allowed() -> str:
                    said = await _run(tmp_path, server, *look, status=None)
                    return said if CODE.search(said) else ""

                said = await eventually(allowed, within_s=120)
                for one in dead:
                    assert re.search(rf"^ *{one} ", said, re.MULTILINE)
                assert f"would go on with the replica of node {survivor}" in said
                code = CODE.search(said)
                assert code is not None
                await _run(tmp_path, server, *confirm[:-1], code[1])
                await client.publish(topic, b"after", partition=partition)
                records = await client.fetch(topic, partition, 0, fresh=True)
                assert len(records) == 21

    run(scenario())


def test_what_the_guide_prints_goes_on_when_the_catalog_is_lost(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    _, _, _, look, confirm, follow = _printed("lost-majority.md")

    async def offline(words: list[str], node: NodeProcess, code: str = "") -> str:
        """Run what is printed at a node, with its own files and the code that was given there."""
        given = [*words]
        own = {"--data": str(node.data), "--config": str(node.config), "--confirm": code}
        for option, value in own.items():
            if option in given:
                at = given.index(option)
                given[at : at + 2] = [option, value] if value else []
        return (await asyncio.to_thread(angarium, tmp_path, *given)).stdout

    async def scenario() -> None:
        async with cluster_of(3, settings={"recover_after_s": 2}) as cluster:
            await cluster.create_topic("orders", partitions=1)
            first, second, _ = cluster.ids
            async with Client(cluster.nodes[first].address) as client:
                for number in range(20):
                    await client.publish("orders", b"%d" % number)
                await cluster.settled(topics=["orders"])
                for node in cluster.nodes.values():
                    node.kill()
                    node.wait()
                home, other = cluster.nodes[first], cluster.nodes[second]
                code = CODE.search(await offline(look, home))
                assert code is not None
                done = await offline(confirm, home, code[1])
                words = re.search(r"--follow (\S+)", done)
                assert words is not None
                following = [words[1] if one == "CLUSTER" else one for one in follow]
                code = CODE.search(await offline(following, other))
                assert code is not None
                await offline(following, other, code[1])
                cluster.restart(first)
                cluster.restart(second)
                await cluster.back(first)
                await cluster.back(second)
                # Two of its three replicas are there: the partition goes on by itself.
                await client.publish("orders", b"after")
                records = await client.fetch("orders", 0, 0, fresh=True)
                assert len(records) == 21

    run(scenario())


def test_what_the_guide_prints_replaces_a_dead_machine(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    status, serve, check, drain, remove = _printed("replace-a-machine.md")

    async def scenario() -> None:
        async with cluster_of(4) as cluster:
            await cluster.create_topic("orders", partitions=2)
            server = cluster.nodes[NodeId(1)].address
            async with Client(server) as client:
                for number in range(20):
                    await client.publish("orders", b"%d" % number)
                cluster.nodes[LOST].kill()

                async def is_missed() -> bool:
                    said = await _run(tmp_path, server, *status, "--format", "json")
                    return [one["alive"] for one in json.loads(said)["nodes"]][LOST - 1] is False

                await eventually(is_missed)
                joining = [server if word == "10.0.0.1:7400" else word for word in serve]
                doors = ("--wire-port", "0", "--grpc-port", "off", "--http-port", "off")
                machine = _started(tmp_path, *joining, *doors)
                try:
                    await _run(tmp_path, server, *check)
                    nodes = (await client.cluster_status()).nodes
                    assert [one.id for one in nodes if one.alive] == [1, 2, 3, 4]
                finally:
                    machine.kill()
                    await asyncio.to_thread(machine.wait)
                await _run(tmp_path, server, *drain)
                await _run(tmp_path, server, *remove)
                nodes = (await client.cluster_status()).nodes
                assert [one.id for one in nodes] == [1, 2, 4]
                found = await client.describe_topic("orders")
                assert all(LOST not in one.replicas for one in found.partitions)

    run(scenario())
