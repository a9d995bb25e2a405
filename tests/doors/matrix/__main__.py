"""Try every cell against a cluster of its own, and write the counts down.

python -m tests.doors.matrix [--nodes 3] [--write] [--planted [BUG ...]]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from tests.doors.matrix.planted import BUGS
from tests.doors.matrix.report import PAGE, report, written
from tests.doors.matrix.trying import Tried, try_all
from tests.doors.matrix.world import SecuredCluster, World

if TYPE_CHECKING:
    from collections.abc import Sequence


async def tried_on(*, nodes: int = 1, bug: str = "") -> Tried:
    """Return what all callers find on a new cluster; with a `bug` planted in its nodes, if any."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = SecuredCluster(Path(folder), nodes=nodes, bug=bug)
        async with cluster:
            world = World(cluster)
            try:
                await world.prepare()
                return await try_all(world, cluster.nodes)
            finally:
                await world.close()


async def main(*, nodes: int, write: bool) -> int:
    """Try everything; return the exit status."""
    tried = await tried_on(nodes=nodes)
    for one in tried.mismatches:
        print(one)
    print(report(tried))
    print(f"{nodes} nodes, {tried.seconds:.0f} s, {len(tried.mismatches)} mismatches")
    if write and not tried.mismatches:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), tried), encoding="utf-8")
    return 1 if tried.mismatches else 0


async def planted(bugs: Sequence[str]) -> int:
    """Try nodes with bugs, one after the other; return the exit status."""
    missed = 0
    for bug in bugs:
        tried = await tried_on(bug=bug)
        print(f"{bug}: {len(tried.mismatches)} cells differ, {tried.seconds:.0f} s", flush=True)
        missed += not tried.mismatches
    print(f"{len(bugs) - missed} of {len(bugs)} bugs found")
    return 1 if missed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1, help="how many; they take turns")
    parser.add_argument("--write", action="store_true", help=f"write the counts into {PAGE.name}")
    parser.add_argument(
        "--planted", nargs="*", choices=BUGS, metavar="BUG", help="try nodes with bugs instead"
    )
    chosen = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if chosen.planted is not None:
            sys.exit(runner.run(planted(chosen.planted or list(BUGS))))
        sys.exit(runner.run(main(nodes=chosen.nodes, write=chosen.write)))
