"""How long a partition is without a leader when its voters are far apart, in simulated time.

    python -m benchmarks.elections [--times 20] [--seeds 3]

Three regions of one node each, all equally far apart, with 30 % of jitter and 1 % of messages lost.
Nodes are the real ones from `replica.Host` down, with the default ticks and timeouts. The leader is
killed again and again; time runs until another one serves. Beside it, without what elections allow
for round trips (`replica.round_trips`).
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from angarium.cli.output import print_table
from angarium.replica.round_trips import RoundTrips
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.script import GROUP
from angarium.testing.sim.settings import Settings
from angarium.testing.sim.wan import Wan, Way, even_wan
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE_WAYS_MS: Final = (20, 80, 200)
REST: Final = 6 * SECOND
"""Between a leader that serves and the next fault."""

WAIT_MAX: Final = 120 * SECOND


def apart(one_way_ms: int) -> Wan:
    """Return three regions that are so far apart."""
    wan = even_wan(regions=3, one_way_ms=one_way_ms)
    delay = one_way_ms * MILLISECOND
    way = Way(delay, 3 * delay // 10, 0.01)
    return replace(wan, ways=dict.fromkeys(wan.ways, way))


def failovers_s(one_way_ms: int, *, seed: int, times: int) -> list[float]:
    """Return how long each of so many failovers took."""
    settings = Settings(nodes=3, replicas=3, producers=2, readers=1, wan=apart(one_way_ms))
    world = World(seed, settings)
    world.form()
    took = []
    for _ in range(times):
        world.wait(REST, lambda: False)
        world.wait(WAIT_MAX, lambda: world.operator.leader(GROUP) is not None)
        leader = world.operator.leader(GROUP)
        assert leader is not None, "nobody leads"
        node = world.node_of(leader.id)
        node.crash()
        killed = world.scheduler.now
        world.wait(WAIT_MAX, lambda: world.operator.leader(GROUP) is not None)
        took.append((world.scheduler.now - killed) / SECOND)
        node.boot()
    return took


@contextmanager
def nothing_allowed_for() -> Iterator[None]:
    """Let elections be as quick as within a data centre."""
    original = RoundTrips.allowed_ticks
    RoundTrips.allowed_ticks = lambda *_: 0  # type: ignore[method-assign]
    try:
        yield
    finally:
        RoundTrips.allowed_ticks = original  # type: ignore[method-assign]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for one_way_ms in ONE_WAYS_MS:
        figures = []
        for is_allowed in (False, True):
            took = []
            for seed in range(1, options.seeds + 1):
                if is_allowed:
                    took += failovers_s(one_way_ms, seed=seed, times=options.times)
                else:
                    with nothing_allowed_for():
                        took += failovers_s(one_way_ms, seed=seed, times=options.times)
            took.sort()
            worst = took[int(len(took) * 0.95)]
            figures += [statistics.median(took), worst, took[-1]]
        rows.append((f"{one_way_ms} ms", *(f"{one:.1f}" for one in figures)))
        print(*rows[-1], flush=True)
    heads = ("one way", "before: median s", "p95", "max", "allowing: median s", "p95", "max")
    print_table(heads, rows, none="")


if __name__ == "__main__":
    main()
