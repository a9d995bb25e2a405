"""Run the faults and print the table.

    python -m angarium.testing.cluster.chaos [--times 20] [--only kill,pause] [--folder DIR]

Any violation makes the run fail.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import uvloop

from angarium.testing.cluster.chaos.ground import Ground
from angarium.testing.cluster.chaos.line import HEADING
from angarium.testing.cluster.chaos.table import FAULTS


async def run(folder: Path, times: int, only: list[str]) -> int:
    """Run the faults that `only` names, or all; return the exit status."""
    ground = Ground(folder, times)
    print(HEADING, flush=True)
    failed = 0
    for kind in only or FAULTS:
        for fault in FAULTS[kind]:
            line = await fault(ground)
            print(line, flush=True)
            failed += len(line.violations)
            for violation in line.violations[:20]:
                print(f"    {violation}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Faults on a cluster of real processes.")
    kinds = list(FAULTS)
    parser.add_argument("--times", type=int, default=20, help="how often each fault strikes")
    parser.add_argument("--only", default="", help=f"some of {','.join(kinds)}")
    parser.add_argument("--folder", type=Path, help="where data and logs go, and stay")
    options = parser.parse_args(arguments)
    only = [one for one in options.only.split(",") if one]
    if unknown := [one for one in only if one not in kinds]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(kinds)}")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="angarium-chaos-"))
    try:
        status = uvloop.run(run(folder, options.times, only))
    except BaseException:
        print(f"data and logs of the nodes are in {folder}", file=sys.stderr)
        raise
    if status == 0 and options.folder is None:
        shutil.rmtree(folder)
    elif status:
        print(f"data and logs of the nodes are in {folder}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
