"""Change grants under load, and print what was published."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import uvloop
from tests.doors.granting.load import loaded
from tests.doors.matrix.world import SecuredCluster


async def main(*, nodes: int, changes: int) -> int:
    """Return 1 if a publish failed that was allowed."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = SecuredCluster(Path(folder), nodes=nodes)
        async with cluster:
            load = await loaded(cluster, changes=changes)
    for one in load.failed:
        print(one)
    told = ", ".join(f"{door} {count:,}" for door, count in load.published.items())
    print(f"{load.changes} changes in {load.seconds:.1f} s on {nodes} nodes: published {told};")
    print(f"{len(load.failed)} that were allowed failed")
    return int(bool(load.failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--changes", type=int, default=100)
    chosen = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(nodes=chosen.nodes, changes=chosen.changes)))
