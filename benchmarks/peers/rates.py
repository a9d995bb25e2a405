"""Publish to delivery at given rates, Angarium and NATS JetStream in turns.

    python -m benchmarks.peers.rates [--rates 100,300,1000,2000] [--topics 1,20] [--rounds 5] ...

Three nodes each, 100-byte records, 20 workers in one client, each awaiting its acknowledgements. A
record counts from the moment it was due. Angarium's records are CONSISTENT, fsynced by a majority;
those of NATS are in the page cache of one, and with `--synced` also fsynced, by servers of their
own. What was acknowledged is read back by id. Medians of the rounds; ratios are between those.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import uvloop
from benchmarks.peers.known import CLIENTS
from benchmarks.peers.ours import Ours
from benchmarks.peers.shapes import Delays, Shapes

from angarium.bench.cluster import BenchCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.peers.nats_jetstream import NatsCluster

RATES: Final = (100, 300, 1_000, 2_000)
TOPICS: Final = (1, 20)

WORKERS: Final = 20
"""So many, whatever the topics: one that awaits each answer cannot publish 2,000 in a second."""

P99_MS_MAX: Final = 25.0
"""What we ask of ourselves on a quiet machine."""
P99_RATIO_MAX: Final = 0.5
"""The same, beside NATS as it comes."""

OURS: Final = "angarium"
Load = tuple[int, int]
"""How many topics, and records per second over all of them."""


class Side(NamedTuple):
    """Whoever takes turns."""

    name: str
    turn: Callable[[int, int], Awaitable[Delays]]


class Rates:
    """The delays of every round, by load and side."""

    def __init__(self, loads: Sequence[Load], *, rounds: int, seconds: float) -> None:
        self.found: dict[Load, dict[str, list[Delays]]] = {load: {} for load in loads}
        self._rounds = rounds
        self._seconds = seconds

    async def run(self, *, with_synced: bool) -> None:
        """Start everybody, and let them take turns."""
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rates-")))
            cluster = BenchCluster(folder / "ours")
            stack.push_async_callback(asyncio.to_thread, cluster.stop)
            await cluster.start()
            sides = [Side(OURS, _of_ours(Ours(cluster, seconds=self._seconds)))]
            for is_synced in (False, True) if with_synced else (False,):
                kept = folder / f"nats-{is_synced}"
                nats = _nats(kept, is_synced=is_synced)
                stack.push_async_callback(asyncio.to_thread, nats.stop)
                await nats.start()
                stack.push_async_callback(nats.close)
                sides.append(Side(nats.key, _of_peer(Shapes(nats, seconds=self._seconds))))
            for side in sides:  # nobody's first connection counts
                await side.turn(1, RATES[0])
            for number in range(self._rounds):
                await self._round(number, sides)

    async def _round(self, number: int, sides: Sequence[Side]) -> None:
        for load, found in self.found.items():
            # Who begins changes: whatever one side leaves behind hits the others alike.
            for turn in range(len(sides)):
                name, delays_of = sides[(number + turn) % len(sides)]
                delays = await delays_of(*load)
                found.setdefault(name, []).append(delays)
                said = f"p50 {delays.p50_ms:8.2f} ms  p99 {delays.p99_ms:8.2f} ms"
                where = f"{load[0]:3} topics {load[1]:6,}/s"
                print(f"round {number + 1}  {where}  {name:12} {said}", file=sys.stderr, flush=True)


def _nats(folder: Path, *, is_synced: bool) -> NatsCluster:
    try:
        from benchmarks.peers.nats_jetstream import NatsCluster  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError:
        raise SystemExit(f"NATS is missing; to have it:  {CLIENTS}") from None
    return NatsCluster(folder, sync_always=is_synced, is_pushed=True)


def _of_ours(ours: Ours) -> Callable[[int, int], Awaitable[Delays]]:
    async def turn(topics: int, rate: int) -> Delays:
        return Delays(*await ours.end_to_end(topics=topics, rate=rate, workers=WORKERS))

    return turn


def _of_peer(load: Shapes) -> Callable[[int, int], Awaitable[Delays]]:
    async def turn(topics: int, rate: int) -> Delays:
        return await load.end_to_end(topics=topics, rate=rate, workers=WORKERS)

    return turn


def table(found: dict[Load, dict[str, list[Delays]]]) -> str:
    """Return a row for each load and peer, as Markdown."""
    lines = [
        "| topics | records/s | Angarium, p50 and p99 ms | beside | its p50 and p99 ms"
        " | ratio of p50 | ratio of p99 | reached |",
        "|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    for (topics, rate), sides in found.items():
        ours = _middle(sides[OURS])
        for name in (name for name in sides if name != OURS):
            other = _middle(sides[name])
            ratios = [mine / its for mine, its in zip(ours, other, strict=True)]
            is_reached = ours.p99_ms <= P99_MS_MAX and ratios[1] <= P99_RATIO_MAX
            lines.append(
                f"| {topics} | {rate:,} | {_shown(ours, sides[OURS])} | {name}"
                f" | {_shown(other, sides[name])} | {ratios[0]:.2f} | {ratios[1]:.2f}"
                f" | {'yes' if is_reached else '**no**'} |"
            )
    return "\n".join(lines)


def _middle(rounds: Sequence[Delays]) -> Delays:
    return Delays(*(statistics.median(values) for values in zip(*rounds, strict=True)))


def _shown(middle: Delays, rounds: Sequence[Delays]) -> str:
    p99s = [one.p99_ms for one in rounds]
    return f"{middle.p50_ms:.1f}, {middle.p99_ms:.1f} ({min(p99s):.1f} to {max(p99s):.1f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", type=_numbers, default=RATES, metavar="N,...")
    parser.add_argument("--topics", type=_numbers, default=TOPICS, metavar="N,...")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="that are timed, each turn")
    parser.add_argument("--synced", action="store_true", help="beside `sync_interval: always`, too")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args()
    loads = [(topics, rate) for topics in options.topics for rate in options.rates]
    rates = Rates(loads, rounds=options.rounds, seconds=options.seconds)
    began = time.monotonic()
    uvloop.run(rates.run(with_synced=options.synced))
    print(f"-- {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.format == "json":
        told = [
            {"topics": topics, "rate": rate, "rounds_ms": sides}
            for (topics, rate), sides in rates.found.items()
        ]
        print(msgspec.json.format(msgspec.json.encode(told)).decode())
    else:
        print(table(rates.found))


def _numbers(given: str) -> tuple[int, ...]:
    return tuple(int(number) for number in given.split(","))


if __name__ == "__main__":
    main()
