"""A region is lost with what is at home there: the client and the command read everything else."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from tests.cluster.command_line import angarium

from angarium.api import TopicConfig
from angarium.client import Client, ClientSettings
from angarium.errors import TooStale
from angarium.ids import Offset
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster

pytestmark = pytest.mark.timeout(300)

WAIT_S = 60.0
"""What happens soon takes so long on a busy machine at the most."""

REQUEST_S = 10.0
"""What a client waits for an answer by default: nothing here may take as long as that."""

HOMED = TopicConfig(placement="homed", regions=("eu", "us"), replication=1)
COPIED = TopicConfig(placement="homed", regions=("eu", "us"), replication=1, readers=("*",))


async def made(cluster: ProcessCluster, client: Client, topic: str, config: TopicConfig) -> None:
    """Make a topic with a partition in each region, and a record in each partition."""
    await cluster.create_topic(topic, partitions=2, config=config)
    for number in range(2):
        await client.publish_batch(topic, [b"old %d" % number], partition=number)


def test_what_has_leaders_is_read_and_the_rest_joins(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, regions=("eu", "eu", "us")) as cluster:
            (gone,) = [one for one, node in cluster.nodes.items() if node.region == "us"]
            lost = cluster.nodes[gone]
            there = [cluster.nodes[one].address for one in cluster.ids if one != gone]
            async with Client(
                *there, settings=ClientSettings(request_timeout_s=REQUEST_S)
            ) as client:
                await made(cluster, client, "orders", HOMED)
                await made(cluster, client, "slips", COPIED)

                async def is_copied() -> bool:
                    readers = (await client.describe_topic("slips")).partitions[1].readers
                    found = await cluster.contact(readers[0]).fetch("slips", 1, Offset(0))
                    return found.node == readers[0] and bool(found.batches)

                await eventually(is_copied, within_s=WAIT_S, what="the copy is complete")
                running = client.subscribe("orders", start="earliest")
                async with asyncio.timeout(WAIT_S):
                    assert {(await anext(aiter(running))).value for _ in range(2)} == {
                        b"old 0",
                        b"old 1",
                    }
                lost.kill()

                async def is_told() -> bool:
                    told = (await client.describe_topic("orders")).partitions[1]
                    return told.leader is None and bool(told.trouble)

                await eventually(is_told, within_s=WAIT_S, what="the lost home is told")

                async def is_noticed() -> bool:
                    return running.waiting_for.keys() == {("orders", 1)}

                await eventually(is_noticed, within_s=WAIT_S, what="it is waited for")
                for start in ("live", "latest", "earliest"):
                    began = time.monotonic()
                    async with client.subscribe("orders", start=start) as records:
                        assert time.monotonic() - began < REQUEST_S
                        assert records.waiting_for.keys() == {("orders", 1)}
                        assert "0 of 1 replicas" in str(records.waiting_for["orders", 1])
                        await client.publish_batch("orders", [b"new"], partition=0)
                        async with asyncio.timeout(WAIT_S):
                            while (await anext(aiter(records))).value != b"new":
                                pass
                # What has a copy is read there.
                async with client.subscribe("slips", start="earliest") as records:
                    async with asyncio.timeout(WAIT_S):
                        copied = {(await anext(aiter(records))).value for _ in range(2)}
                    assert copied == {b"old 0", b"old 1"}
                    assert not records.waiting_for
                began = time.monotonic()
                with pytest.raises(TooStale):
                    await client.fetch("slips", 1, max_staleness=0.5)
                assert time.monotonic() - began < REQUEST_S / 2
                await asyncio.to_thread(the_command_reads, tmp_path, ",".join(there))
                async with client.subscribe("orders", start="live") as records:
                    cluster.restart(gone)
                    await cluster.back(gone)
                    await client.publish_batch("orders", [b"back"], partition=1)
                    async with asyncio.timeout(WAIT_S):
                        one = await anext(aiter(records))
                    assert (one.partition, one.value) == (1, b"back")

                    async def is_whole() -> bool:
                        return not records.waiting_for

                    await eventually(is_whole, within_s=WAIT_S, what="nothing is waited for")
                async with asyncio.timeout(WAIT_S):
                    values = [(await anext(aiter(running))).value for _ in range(4)]
                assert set(values) == {b"back", b"new"}
                await running.close()

    def the_command_reads(folder: Path, servers: str) -> None:
        words = ("--servers", servers, "--format", "raw")
        done = angarium(folder, "sub", "orders", "--from", "earliest", "--max", "4", *words)
        assert done.stdout.split("\n")[:4] == ["old 0", "new", "new", "new"]
        said = [one for one in done.stderr.splitlines() if "orders[1]" in one]
        assert len(said) == 1, done.stderr
        assert "0 of 1 replicas" in said[0]
        began = time.monotonic()
        done = angarium(folder, "sub", "nothing", *words, status=None)
        assert done.returncode != 0
        assert "nothing" in done.stderr
        assert time.monotonic() - began < REQUEST_S

    run(scenario())
