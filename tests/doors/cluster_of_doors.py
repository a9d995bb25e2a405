"""Three nodes of real processes with every door open, shared by the tests of this folder."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

from angarium.client import Client

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from angarium.bench.cluster import BenchCluster, BenchNode

T = TypeVar("T")


@dataclass(frozen=True)
class Doors:
    """The nodes, and how to find one that does not lead."""

    cluster: BenchCluster

    @property
    def nodes(self) -> list[BenchNode]:
        return self.cluster.nodes

    @property
    def servers(self) -> list[str]:
        return self.cluster.servers.split(",")

    async def followers(self, topic: str) -> list[BenchNode]:
        """Return the nodes that do not lead the topic's first partition, once one does."""
        async with asyncio.timeout(60), Client(*self.servers) as client:
            while True:
                info = await client.describe_topic(topic)
                leader = info.partitions[0].leader
                if leader is not None:
                    return [one for at, one in enumerate(self.nodes, 1) if at != leader]
                await asyncio.sleep(0.05)


def run(work: Coroutine[Any, Any, T], *, within_s: float = 120.0) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(within_s):
            return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(in_time())
