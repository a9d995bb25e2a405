"""Three regions behind delays: leaders go to where most publishes come from, and stay when told."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from angarium import Client
from angarium.api import TopicConfig
from angarium.client import ClientSettings
from angarium.errors import AngariumError
from angarium.testing.cluster import ProcessCluster, eventually
from angarium.testing.cluster.wan import RegionLoop, WanNetwork, calling_from

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.ids import NodeId

pytestmark = pytest.mark.timeout(600)

WAIT_S = 180.0
ONE_WAY_S = 0.03
WINDOW_S = 6
PAUSE_S = 25
SETTINGS = {"follow_window_s": WINDOW_S, "follow_pause_s": PAUSE_S}
TOPIC = TopicConfig(replication=3, regions=("as",), leaders_follow=True)


class Publishers:
    """Publishes from one region after the other, again and again."""

    def __init__(self, network: WanNetwork, addresses: list[str]) -> None:
        self._network = network
        self._addresses = addresses
        self.stored: list[bytes] = []
        self.seconds: list[float] = []
        """How long each publish from the region of now took."""
        self._task: asyncio.Task[None] | None = None

    async def publish_from(self, region: str) -> None:
        """From now on, all come from a region."""
        await self.stop()
        self.seconds = []
        with calling_from(self._network, region):
            self._task = asyncio.create_task(self._publish(region))

    async def stop(self) -> None:
        """Publish nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _publish(self, region: str) -> None:
        settings = ClientSettings(region=region)
        async with Client(*self._addresses, settings=settings) as client:
            while True:
                value = b"%s %d" % (region.encode(), len(self.stored))
                began = time.monotonic()
                try:
                    await client.publish("orders", value)
                except AngariumError:
                    continue
                self.seconds.append(time.monotonic() - began)
                self.stored.append(value)


async def _all_values(client: Client) -> set[bytes]:
    found: set[bytes] = set()
    offset = 0
    while records := await client.fetch("orders", 0, offset, fresh=True):
        found |= {bytes(record.value or b"") for record in records}
        offset = (records[-1].offset or 0) + 1
    return found


def test_leaders_follow_publishers_and_stay_where_an_operator_wants_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = WanNetwork(["as", "eu", "us"], one_way_s=ONE_WAY_S)
        async with ProcessCluster(tmp_path, nodes=3, network=network, settings=SETTINGS) as cluster:
            where = {one: network.region_of(one) for one in cluster.ids}
            at = {region: node for node, region in where.items()}
            await cluster.create_topic("orders", partitions=1, config=TOPIC)
            addresses = [cluster.nodes[one].address for one in cluster.ids]

            async def leader() -> NodeId | None:
                return (await (await cluster.someone()).describe("orders")).partitions[0].leader

            async def led_in(region: str) -> None:
                async def is_so() -> bool:
                    return await leader() == at[region]

                await eventually(is_so, within_s=WAIT_S, what=f"{region} leads")

            await led_in("as")
            publishers = Publishers(network, addresses)
            try:
                await publishers.publish_from("us")
                await led_in("us")
                # Publishers who are elsewhere by now are followed there, after a while.
                await publishers.publish_from("eu")
                await led_in("eu")
                async with Client(*addresses) as operator:
                    began = time.monotonic()
                    await operator.transfer_leader("orders", 0, at["as"])
                    await led_in("as")
                    # Somebody has said so: it stays, though nobody publishes there.
                    while time.monotonic() - began < PAUSE_S - 5:
                        assert await leader() in {at["as"], None}
                        await asyncio.sleep(0.5)
                    await led_in("eu")
                    await publishers.stop()
                    assert publishers.stored
                    assert set(publishers.stored) <= await _all_values(operator)
            finally:
                await publishers.stop()

    with asyncio.Runner(loop_factory=RegionLoop) as runner:
        runner.run(scenario())
