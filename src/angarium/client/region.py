"""Where a client is: the region that it was told, or the one whose nodes answer soonest.

A region decides which nodes are asked first, which replicas are read from, and to which partitions
of a homed topic records go. A client without one goes to leaders, wherever they are.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from angarium.client.addresses import parsed_address
from angarium.errors import AngariumError
from angarium.wire import DeadlineExceeded, Unreachable
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import ClusterStatus, NodeInfo
    from angarium.client.pool import Pool

REGION_VARIABLE: Final = "ANGARIUM_REGION"

AUTO: Final = "auto"
"""Written for a region: measure which one is nearest."""

NODES_ASKED: Final = 2
"""Nodes of each region that are asked; one of them may be busy, or far from the others."""

ROUNDS: Final = 3
"""How often each is asked. The quickest answer counts: nothing is quicker than the way."""


def region_in(environment: Mapping[str, str] | None = None) -> str:
    """Return the region that the environment names; empty if none."""
    return (os.environ if environment is None else environment).get(REGION_VARIABLE, "").strip()


class Region:
    """One client's region."""

    def __init__(self, wanted: str | None) -> None:
        """Take what the settings say; None: what the environment says."""
        wanted = region_in() if wanted is None else wanted
        self.is_measured = wanted == AUTO
        """Whether it is found by measuring: the next run may find another one."""
        self.name = "" if self.is_measured else wanted
        """Empty: none, or not known yet."""
        self.is_settled = not self.is_measured
        """Whether nothing has to be measured any more."""
        self._measuring: asyncio.Task[str] | None = None

    async def settle(self, pool: Pool, status: ClusterStatus) -> None:
        """Measure, if that was asked for and has not been done; callers at one time share it."""
        if self.is_settled:
            return
        if self._measuring is None:
            work = nearest_region(pool, status.nodes)
            self._measuring = asyncio.get_running_loop().create_task(work)
        measuring = self._measuring
        try:
            self.name = await asyncio.shield(measuring)
            self.is_settled = True
        finally:
            if measuring.done():
                self._measuring = None

    async def close(self) -> None:
        """Stop measuring."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.wait([self._measuring])


async def nearest_region(pool: Pool, nodes: Sequence[NodeInfo]) -> str:
    """Return the region whose nodes answer soonest; empty where no node has one.

    Regions of which nobody answers are passed over. If nobody answers at all it is the first one
    by name, so that a caller goes on with something.
    """
    by_region: dict[str, list[NodeInfo]] = {}
    for node in nodes:
        if node.region and node.alive and node.addresses.get("wire"):
            by_region.setdefault(node.region, []).append(node)
    if len(by_region) < 2:
        return next(iter(by_region), "")
    asked = [(name, one) for name, some in by_region.items() for one in some[:NODES_ASKED]]
    times = await asyncio.gather(*(_round_trip_s(pool, node) for _, node in asked))
    found = [(s, name) for s, (name, _) in zip(times, asked, strict=True) if s is not None]
    return min(found)[1] if found else min(by_region)


async def _round_trip_s(pool: Pool, node: NodeInfo) -> float | None:
    loop = asyncio.get_running_loop()
    best: float | None = None
    try:
        connection = await pool.connection(parsed_address(node.addresses["wire"]))
        for _ in range(ROUNDS):
            began = loop.time()
            try:
                await connection.request(Operation.WHOAMI, timeout_s=pool.settings.dial_timeout_s)
            except (DeadlineExceeded, Unreachable):
                raise
            except AngariumError:
                pass  # a refusal has come the same way
            took = loop.time() - began
            best = took if best is None else min(best, took)
    except AngariumError:
        return best
    return best
