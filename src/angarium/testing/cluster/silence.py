"""A node whose packets vanish: no connection breaks, and its silence alone tells the others.

A cut of `Network` is such a one: it holds bytes back and closes nothing. What is measured here is
when the cut is noticed, on both sides, and that a node that is only slow is not taken for gone.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from angarium.api import NodeInfo
    from angarium.ids import NodeId
    from angarium.testing.cluster.cluster import ProcessCluster

NOTICED_S_MAX: Final = 10.0
"""How long it may take on a busy machine until a cut is noticed: two seconds of silence, and one
of everything else, on one with nothing else to do."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """How long after a silent cut it was noticed, in seconds."""

    unready_s: float
    """Until the node that was cut off said that it is not ready."""
    not_alive_s: float
    """Until every other node said that it is not alive."""


async def seen(cluster: ProcessCluster, at: NodeId, node: NodeId) -> NodeInfo:
    """Return what one node says of another one, or of itself."""
    status = await cluster.contact(at).status()
    return next(one for one in status.nodes if one.id == node)


async def cut_silently(
    cluster: ProcessCluster, node: NodeId, *, within_s: float = NOTICED_S_MAX
) -> Noticed:
    """Let every packet between a node and the others vanish; return when that was noticed.

    The cut stays. Raises `TimeoutError` if it is not noticed in time.
    """
    assert cluster.network is not None, "the cluster was started without a network to cut"
    began = time.monotonic()
    cluster.network.cut_off(node, cluster.ids)

    async def is_unready() -> bool:
        return bool((await seen(cluster, node, node)).unready)

    async def is_not_alive() -> bool:
        others = [one for one in cluster.ids if one != node]
        return not any([(await seen(cluster, one, node)).alive for one in others])

    async def taken(look: str) -> float:
        asked = is_unready if look == "unready" else is_not_alive
        await eventually(asked, within_s=within_s, what=f"node {node}, cut off, is {look}")
        return time.monotonic() - began

    return Noticed(*await asyncio.gather(taken("unready"), taken("not alive")))


async def pause_briefly(
    cluster: ProcessCluster, node: NodeId, *, pause_s: float = 1.0
) -> list[str]:
    """Stop a node for a moment (SIGSTOP); return the nodes that counted it as gone since then."""
    process = cluster.nodes[node]
    others = [one for one in cluster.ids if one != node]
    process.pause()
    ends, blamed = time.monotonic() + pause_s, set[str]()
    try:
        while (left_s := ends - time.monotonic()) > 0:
            blamed |= await _blamed(cluster, others, node)
            await asyncio.sleep(min(left_s, 0.1))
    finally:
        process.resume()
    while time.monotonic() < ends + 2 * pause_s:
        blamed |= await _blamed(cluster, others, node)
        await asyncio.sleep(0.1)
    return sorted(blamed)


async def _blamed(cluster: ProcessCluster, others: list[NodeId], node: NodeId) -> set[str]:
    return {
        f"node {one} says that node {node} is not alive"
        for one in others
        if not (await seen(cluster, one, node)).alive
    }
