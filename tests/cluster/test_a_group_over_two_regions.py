"""A stream group with members in two regions: each reads at home, and one stands in for the other.

Real processes behind delays (`angarium.testing.cluster.wan`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from angarium import Client
from angarium.api import TopicConfig
from angarium.client import ClientSettings
from angarium.testing.cluster import ProcessCluster, eventually
from angarium.testing.cluster.wan import RegionLoop, WanNetwork, calling_from

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)

WAIT_S = 180.0
REGIONS = ("east", "west")
HOMED = TopicConfig(placement="homed", regions=REGIONS, replication=1)
"""Partition 0 lives in the east, partition 1 in the west."""


class Member:
    """One member of the group, and what it was given, by partition."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.seen: defaultdict[int, list[bytes]] = defaultdict(list)

    async def consume(self) -> None:
        async with self.client.group("g", kind="stream").consume("orders") as consumer:
            async for record in consumer:
                self.seen[record.partition].append(record.value or b"")
                await record.ack()


def test_members_get_what_lives_in_their_region_and_all_if_they_are_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = WanNetwork(REGIONS, one_way_s=0.04)
        async with (
            ProcessCluster(tmp_path, nodes=3, network=network) as cluster,
            AsyncExitStack() as clients,
        ):
            await cluster.create_topic("orders", partitions=2, config=HOMED)
            addresses = [one.address for one in cluster.nodes.values()]
            members: dict[str, Member] = {}
            tasks: dict[str, asyncio.Task[None]] = {}
            for region in REGIONS:
                with calling_from(network, region):
                    settings = ClientSettings(region=region, request_timeout_s=60.0)
                    client = await clients.enter_async_context(
                        Client(*addresses, settings=settings)
                    )
                    members[region] = Member(client)
                    tasks[region] = asyncio.create_task(members[region].consume())
            await _each_reads_at_home(members)
            tasks["west"].cancel()
            await asyncio.wait([tasks["west"]])
            await _one_reads_all(members["east"], by=members["west"].client)
            tasks["east"].cancel()
            await asyncio.wait(tasks.values())

    with asyncio.Runner(loop_factory=RegionLoop) as runner:
        runner.run(scenario())


async def _each_reads_at_home(members: dict[str, Member]) -> None:
    """Publish in both regions until each member is given what is published in its own."""
    for at, region in enumerate(REGIONS):
        member, number = members[region], 0

        async def is_at_home(member: Member = member, at: int = at) -> bool:
            nonlocal number
            number += 1
            value = b"%d of %d" % (number, at)
            receipt = await member.client.publish("orders", value)
            assert receipt.partition == at, "it is published at home"

            async def came() -> bool:
                return any(value in one.seen[at] for one in members.values())

            await eventually(came, within_s=WAIT_S, what=f"{value!r} is delivered")
            return value in member.seen[at]

        await eventually(is_at_home, within_s=WAIT_S, what=f"the member of {region} has its own")


async def _one_reads_all(left: Member, *, by: Client) -> None:
    receipt = await by.publish("orders", b"alone")
    assert receipt.partition == 1

    async def came() -> bool:
        return b"alone" in left.seen[1]

    await eventually(came, within_s=WAIT_S, what="who is left has both partitions")
    for values in left.seen.values():
        assert len(set(values)) == len(values), "acknowledged once, delivered once"
