"""Measure it, and print a table."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import uvloop
from tests.doors.matrix.world import SecuredCluster
from tests.doors.revoking.measuring import WAYS, Cut, measured, prepare

PROMISED_S = 2.0


async def main(*, nodes: int, times: int) -> int:
    """Measure; return 1 if something took longer than what is promised."""
    cuts: list[Cut] = []
    with tempfile.TemporaryDirectory() as folder:
        cluster = SecuredCluster(Path(folder), nodes=nodes)
        async with cluster:
            async with cluster.admin() as admin:
                await prepare(admin)
            for number in range(times):
                for way in WAYS:
                    cuts += await measured(cluster, way, number)
    print(table(cuts))
    longest = max(one.since_answered_s for one in cuts)
    print(f"{len(cuts)} cut, {nodes} nodes, the longest after {longest:.2f} s")
    return int(longest > PROMISED_S)


def table(cuts: list[Cut]) -> str:
    """Return the median and the longest, in seconds since the change was answered."""
    lines = [f"| what is open | {' | '.join(WAYS)} |", "|---" + "|---:" * len(WAYS) + "|"]
    for what in dict.fromkeys(one.what for one in cuts):
        cells = []
        for way in WAYS:
            took = [one.since_answered_s for one in cuts if (one.what, one.way) == (what, way)]
            cells.append(f"{statistics.median(took):.2f}, {max(took):.2f}" if took else "")
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(nodes=chosen.nodes, times=chosen.times)))
