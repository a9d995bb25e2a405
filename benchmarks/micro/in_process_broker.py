"""How long a test waits for a broker of its own: from `with` to a client's first answer.

    python -m benchmarks.micro.in_process_broker [--rounds 20]

What the pytest fixtures do, after everything is imported: start a node in a thread, form a cluster,
connect, publish to a topic that is made on the way, and stop.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise

from angarium.client import SyncClient
from angarium.testing.broker import BrokerThread


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    steps: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, milliseconds in measured().items():
            steps.setdefault(name, []).append(milliseconds)
    print(f"{'step':<28}{'median ms':>12}{'slowest ms':>12}")
    for name, times in steps.items():
        print(f"{name:<28}{statistics.median(times):>12.1f}{max(times):>12.1f}")


def measured() -> dict[str, float]:
    """Return how long each step took once."""
    moments = [time.perf_counter()]

    def lap() -> None:
        moments.append(time.perf_counter())

    with BrokerThread() as broker:
        lap()
        with SyncClient(*broker.addresses) as client:
            lap()
            client.publish("first", b"x")
            lap()
    lap()
    names = ("broker ready", "client connected", "first record, new topic", "all stopped")
    laps = zip(names, pairwise(moments), strict=True)
    return {name: 1_000 * (end - start) for name, (start, end) in laps}


if __name__ == "__main__":
    main()
