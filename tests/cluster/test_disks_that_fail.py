"""A disk whose sync fails under a running node: that node stops, and nothing acknowledged is lost.

The system itself answers `fdatasync` with an error (strace), so that nothing of ours is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.busy_machine import slowness
from tests.system_programs import require_program

from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.processes import ANGARIUM
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

GOOD_SYNCS = 30
"""How many syncs of each thread succeed before one fails."""


def with_a_failing_disk() -> tuple[str, ...]:
    """Return the program of a node whose disk fails after a while."""
    strace = require_program("strace", apt="strace")
    # The node stays the child of who starts it; whoever traces it ends with it.
    quiet = ("-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync")
    inject = f"inject=fdatasync:error=EIO:when={GOOD_SYNCS}"
    return (strace, *quiet, "-e", inject, *ANGARIUM)


def test_a_node_whose_sync_fails_stops_and_comes_back_with_what_it_has(
    run: Run, cluster_of: ClusterOf
) -> None:
    program = with_a_failing_disk()

    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders", partitions=2)
            failing = await cluster.leader("orders", 0)
            node = cluster.nodes[failing]
            async with Load(cluster, topic="orders", partitions=2, producers=3) as load:
                await load.acknowledged_after(now_micros())
                node.kill()
                node.program = program
                cluster.restart(failing)

                async def has_ended() -> bool:
                    return not node.is_running

                await eventually(
                    has_ended, within_s=60.0 * slowness(), what="the node stops by itself"
                )
                assert node.exit_status == 1
                told = node.log.read_text(encoding="utf-8")
                assert "the write-ahead log is dead, restart the node: fdatasync of wal/" in told
                node.program = ANGARIUM
                cluster.restart(failing)
                await cluster.back(failing)
                await load.acknowledged_after(now_micros())
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())
