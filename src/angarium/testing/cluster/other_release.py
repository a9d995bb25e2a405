"""A node that stands in for a neighbouring release of the software.

    python -m angarium.testing.cluster.other_release --software 0.2 --wire 1-2 --levels 1-2
        --config node.toml [--parent PID]

It is the node of this release, with small files, and tells others that it understands other wire
versions and feature levels. So mixed clusters, upgrades and releases that are put back can be tried
before there is a second release.
"""

from __future__ import annotations

import argparse
import sys

from angarium.node.release import Release
from angarium.testing.cluster import small_node


def program(release: Release) -> tuple[str, ...]:
    """Return the program of a node that stands in for `release`."""
    return (
        *(sys.executable, "-m", "angarium.testing.cluster.other_release"),
        *("--software", release.software),
        *("--wire", f"{release.wire_min}-{release.wire_max}"),
        *("--levels", f"{release.level_min}-{release.level_max}"),
    )


def main() -> int:
    """Run a node until it is told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--software", required=True)
    parser.add_argument("--wire", type=_range, required=True)
    parser.add_argument("--levels", type=_range, required=True)
    options, rest = parser.parse_known_args()
    release = Release(
        software=options.software,
        wire_min=options.wire[0],
        wire_max=options.wire[1],
        level_min=options.levels[0],
        level_max=options.levels[1],
    )
    return small_node.main(release, rest)


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high)


if __name__ == "__main__":
    sys.exit(main())
