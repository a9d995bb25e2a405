"""Nodes that are forked are processes like those that are started: their own, and ours to end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster.processes import NodeProcess


def state_of(node: NodeProcess) -> tuple[str, int]:
    """Return how a process is, and whose child."""
    stat = Path(f"/proc/{node.pid}/stat").read_text(encoding="utf-8")
    state, parent, *_ = stat.rpartition(")")[2].split()
    return state, int(parent)


def test_a_forked_node_is_our_child_in_a_group_of_its_own_and_ends_as_it_is_told(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            nodes = list(cluster.nodes.values())
            assert len({node.pid for node in nodes}) == 3
            for node in nodes:
                assert state_of(node)[1] == os.getpid()
                assert os.getpgid(node.pid) == node.pid
            identities = {(node.data / "identity").read_bytes() for node in nodes}
            assert len(identities) == 3, "chance is not what they share"

            paused, killed, stopped = nodes
            paused.pause()

            async def is_paused() -> bool:
                return state_of(paused)[0] == "T"

            await eventually(is_paused, what="it is paused")
            assert paused.is_running
            paused.resume()
            killed.kill()
            assert (killed.is_running, killed.exit_status) == (False, -signal.SIGKILL)
            stopped.terminate()
            # Somebody looks while somebody else waits: both are told.
            waiting = asyncio.create_task(asyncio.to_thread(stopped.wait))
            while not waiting.done():
                assert stopped.exit_status in (None, 0)
                await asyncio.sleep(0.001)
            assert (await waiting, stopped.exit_status) == (0, 0)
            assert '"stopped"' in stopped.last_words()

    run(scenario())
