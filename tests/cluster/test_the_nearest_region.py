"""Clients of two regions publish and read at home, and elsewhere when that is lost."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from angarium.api import TopicConfig
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError, OutcomeUnknown, TooStale
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster

pytestmark = pytest.mark.timeout(600)

WAIT_S = 180.0
"""Six processes on a busy machine take their time."""

HOMED = TopicConfig(placement="homed", regions=("eu", "us"), readers=("*",), replication=3)


def in_region(cluster: ProcessCluster, region: str) -> list[Any]:
    return [one for one in cluster.nodes.values() if one.region == region]


def client_in(cluster: ProcessCluster, region: str, **changes: Any) -> Client:
    """Return a client that only knows a node of the other region at first."""
    other = "us" if region == "eu" else "eu"
    wanted = ClientSettings(
        region=region, request_timeout_s=60.0, publish_timeout_s=60.0, **changes
    )
    return Client(in_region(cluster, other)[0].address, settings=wanted)


async def made(cluster: ProcessCluster, topic: str) -> None:
    """Make a homed topic of two partitions, and wait until it is where it belongs."""
    await cluster.create_topic(topic, partitions=2, config=HOMED)

    async def is_there() -> bool:
        info = await (await cluster.someone()).describe(topic)
        homes = {"eu": in_region(cluster, "eu"), "us": in_region(cluster, "us")}
        return all(
            one.leader in {node.id for node in homes[one.home]} and len(one.readers) == 1
            for one in info.partitions
        )

    await eventually(is_there, within_s=WAIT_S, what=f"{topic} lives in two regions")
    await cluster.settled(topics=[topic], within_s=WAIT_S)


def test_publish_and_read_at_home_and_elsewhere_when_it_is_lost(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(6, regions=("eu", "us") * 3) as cluster:
            await made(cluster, "orders")
            async with client_in(cluster, "eu") as near, client_in(cluster, "us") as far:
                receipts = [await near.publish("orders", b"%d" % n, key=str(n)) for n in range(20)]
                assert {one.partition for one in receipts} == {0}
                receipt = await far.publish("orders", b"from us")
                assert receipt.partition == 1
                await _read_near(near, far, receipts[-1], receipt)
                await _lose_and_go_on(cluster, near, far)

    run(scenario())


async def _read_near(near: Client, far: Client, first: Any, second: Any) -> None:
    # What was just written in one region is read in the other one, from there.
    found = await far.fetch_batches("orders", 0, at_least=first)
    assert sum(map(len, found)) == 20
    assert found.served.region == "us"
    found = await near.fetch_batches("orders", 1, at_least=second, max_staleness=30)
    assert [bytes(one.value or b"") for batch in found for one in batch] == [b"from us"]
    assert found.served.region == "eu"
    assert found.served.staleness_ms <= 30_000
    async with far.subscribe("orders", start="earliest") as records:
        batch = await asyncio.wait_for(records.next_batch(), WAIT_S)
        assert batch is not None
        assert batch.served.region == "us"


async def _lose_and_go_on(cluster: ProcessCluster, near: Client, far: Client) -> None:
    lost = in_region(cluster, "us")
    for node in lost:
        node.kill()
    began = time.monotonic()
    # It goes to whoever has just died: nobody can say what became of it, so it goes nowhere else.
    in_flight = asyncio.create_task(far.publish("orders", b"in flight"))
    await asyncio.sleep(0.2)
    receipt = await far.publish("orders", b"lost its home")
    assert receipt.partition == 0, "the next region's"
    print(f"first publish elsewhere after {time.monotonic() - began:.1f} s")
    # What it held can still be read in the other region, though not as if it were new.
    found = await near.fetch_batches("orders", 1)
    assert sum(map(len, found)) == 1
    with pytest.raises(TooStale):
        await near.fetch_batches("orders", 1, max_staleness=0.5)
    for node in lost:
        cluster.restart(node.id)
    for node in lost:
        await cluster.back(node.id, within_s=WAIT_S)

    async def is_home() -> bool:
        try:
            return (await far.publish("orders", b"home again")).partition == 1
        except AngariumError:
            return False

    await eventually(is_home, within_s=WAIT_S, what="publishes go home again")
    with suppress(OutcomeUnknown):
        assert (await in_flight).partition in {0, 1}
    stored = [bytes(one.value or b"") async for one in near.read("orders")]
    assert stored.count(b"lost its home") == 1
    assert stored.count(b"in flight") <= 1
    assert sorted(one for one in stored if one.isdigit()) == sorted(b"%d" % n for n in range(20))
