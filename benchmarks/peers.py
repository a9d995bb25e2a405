"""Angarium and NATS JetStream side by side, in one run.

    python -m benchmarks.peers [--quick] [--format json] [--only KEY,...]

Every figure is measured in short rounds that alternate between the two, so that whatever else the
machine does hits both; medians and their ratio are printed. Three nodes each, three replicas, files
on the same disk, 100-byte records. NATS acknowledges before it fsyncs unless told otherwise;
Angarium's CONSISTENT mode never does. Every record of ours is read back and checked.

Needs the extra `peers`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import uvloop
from benchmarks.empty_grpc import calls_per_s
from benchmarks.empty_grpc import running as empty_grpc
from benchmarks.nats_peer import NatsCluster, NatsLoad

from angarium.bench.cluster import BenchCluster
from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Route, Scenario
from angarium.bench.resources import Watched, usage
from angarium.errors import AngariumError
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.bench.report import Report

SIZE: Final = 100
LOADED_RECORDS: Final = 10_000_000
QUICK_SECONDS_MAX: Final = 52.0
"""A quick run begins no further round after this long, so that it is over within a minute."""

BATCHED: Final = {"workers": 8, "batch": 2_000, "scenario": Scenario.PUBLISH}


class Figure(msgspec.Struct):
    """One line of the table. Further fields are further figures of the same line."""

    ours: float | None
    peer_or_baseline: float | None = None
    ratio: float | None = None
    further: Mapping[str, float] = {}

    def as_json(self) -> dict[str, float | None]:
        """Return it as the object of its key."""
        told = {"ours": self.ours, "peer_or_baseline": self.peer_or_baseline, "ratio": self.ratio}
        return {**told, **self.further}


class Peers:
    """Both clusters, and the rounds."""

    def __init__(self, *, is_quick: bool) -> None:
        self.is_quick = is_quick
        self.figures: dict[str, Figure] = {}
        self._rounds = 2 if is_quick else 5
        self._seconds = 0.8 if is_quick else 3.0
        self._started = time.monotonic()
        self._stack = AsyncExitStack()

    async def run(self, only: set[str]) -> None:
        """Measure everything, or what `only` names."""
        async with self._stack:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
            self._ours = BenchCluster(folder / "ours")
            self._nats = NatsCluster(folder / "nats", sync_always=False)
            self._synced = NatsCluster(folder / "synced", sync_always=True)
            for cluster in (self._ours, self._nats, self._synced):
                self._stack.push_async_callback(asyncio.to_thread, cluster.stop)
            await asyncio.gather(self._ours.start(), self._nats.start(), self._synced.start())
            self._empty = await self._stack.enter_async_context(empty_grpc())
            self._load = NatsLoad(self._nats, size=SIZE, seconds=self._seconds)
            self._synced_load = NatsLoad(self._synced, size=SIZE, seconds=self._seconds)
            for key, figure in self._table().items():
                if not only or key in only:
                    told = await figure()
                    self.figures.update({key: told} if isinstance(told, Figure) else told)
                    for name in [key] if isinstance(told, Figure) else told:
                        print(shown(name, self.figures[name]), file=sys.stderr, flush=True)

    def _table(self) -> dict[str, Callable[[], Awaitable[Figure | dict[str, Figure]]]]:
        table: dict[str, Callable[[], Awaitable[Figure | dict[str, Figure]]]] = {
            "idle_mb": self._idle,
            "consistent_batched": self._consistent_batched,
            "consistent_60_workers": lambda: self._sixty(connections=1),
            "consistent_60_connections": lambda: self._sixty(connections=60),
            "consistent_one_by_one_p50": self._one_by_one,
            "eventual_batched": self._eventual,
            "performance_pub_sub": self._performance,
            "catch_up_batches": self._catch_up,
            "grpc_unary_60_workers": self._grpc,
            "end_to_end_p99_ms": self._end_to_end,
        }
        if not self.is_quick:
            table["loaded_mb"] = self._loaded
        return table

    # --- figures ----------------------------------------------------------------------------

    async def _consistent_batched(self) -> Figure:
        return await self._beside(self._rate(**BATCHED), self._load.async_publish)

    async def _sixty(self, *, connections: int) -> Figure:
        ours = self._rate(workers=60, connections=connections, scenario=Scenario.PUBLISH)
        return await self._beside(
            ours, lambda: self._load.awaiting_workers(60, connections=connections)
        )

    async def _one_by_one(self) -> Figure:
        async def ours() -> float:
            report = await self._measured(workers=1, scenario=Scenario.PUBLISH)
            assert report.publish is not None
            return report.publish.p50_ms

        own, synced, unsynced = await self._alternated(
            ours, self._synced_load.one_by_one_p50_ms, self._load.one_by_one_p50_ms
        )
        further = {"peer_unsynced": _rounded(unsynced), "ratio_unsynced": _ratio(own, unsynced)}
        return Figure(_rounded(own), _rounded(synced), _ratio(own, synced), further)

    async def _eventual(self) -> Figure:
        async def ours() -> float:
            report = await self._measured(mode=DeliveryMode.EVENTUAL, **BATCHED)
            assert report.committed_per_s is not None
            return report.committed_per_s

        (own,) = await self._alternated(ours)
        return Figure(_rounded(own))

    async def _performance(self) -> Figure:
        async def ours() -> float:
            report = await self._measured(mode=DeliveryMode.PERFORMANCE, workers=8, batch=500)
            assert report.received_per_s is not None
            return report.received_per_s

        return await self._beside(ours, self._load.core_pub_sub)

    async def _catch_up(self) -> dict[str, Figure]:
        records: list[float] = []

        async def ours() -> float:
            report = await self._measured(workers=8, batch=500, scenario=Scenario.CATCH_UP)
            assert report.as_records_per_s is not None
            records.append(report.as_records_per_s)
            return report.records_per_s

        count = 10_000 if self.is_quick else 100_000
        batches = await self._beside(ours, lambda: self._load.catch_up(count))
        own, peer = statistics.median(records), batches.peer_or_baseline
        assert peer is not None
        as_records = Figure(_rounded(own), peer, _ratio(own, peer))
        return {"catch_up_batches": batches, "catch_up_records": as_records}

    async def _grpc(self) -> Figure:
        def ours(route: Route) -> Callable[[], Awaitable[float]]:
            return self._rate(
                workers=60, protocol=Protocol.GRPC, route=route, scenario=Scenario.PUBLISH
            )

        async def empty() -> float:
            return await calls_per_s(self._empty, workers=60, size=SIZE, seconds=self._seconds)

        leader, base, follower = await self._alternated(
            ours(Route.LEADER), empty, ours(Route.FOLLOWER)
        )
        further = {
            "through_follower": _rounded(follower),
            "ratio_through_follower": _ratio(follower, base),
        }
        return Figure(_rounded(leader), _rounded(base), _ratio(leader, base), further)

    async def _end_to_end(self) -> Figure:
        halves: list[float] = []

        async def ours() -> float:
            report = await self._measured(workers=20, topics=20, rate=1_000.0)
            assert report.end_to_end is not None
            halves.append(report.end_to_end.p50_ms)
            return report.end_to_end.p99_ms

        (p99,) = await self._alternated(ours)
        return Figure(_rounded(p99), further={"p50": _rounded(statistics.median(halves))})

    async def _idle(self) -> Figure:
        return Figure(*self._memory())

    async def _loaded(self) -> Figure:
        # As fast as it goes until there are enough of them.
        left = LOADED_RECORDS
        while left > 0:
            report = await self._measured(duration_s=10.0, **BATCHED)
            left -= report.verdict.acknowledged
        own, _, _ = self._memory()
        return Figure(own)

    def _memory(self) -> tuple[float, float, float | None]:
        ours = [usage(Watched(node.pid)) for node in self._ours.nodes]
        theirs = [usage(Watched(one.pid)) for one in self._nats.watched]
        own, peer = (
            max(one.memory_bytes for one in some if one is not None) / 1e6
            for some in (ours, theirs)
        )
        return _rounded(own), _rounded(peer), _ratio(own, peer)

    # --- rounds -----------------------------------------------------------------------------

    async def _beside(
        self, ours: Callable[[], Awaitable[float]], peer: Callable[[], Awaitable[float]]
    ) -> Figure:
        own, other = await self._alternated(ours, peer)
        return Figure(_rounded(own), _rounded(other), _ratio(own, other))

    async def _alternated(self, *sides: Callable[[], Awaitable[float]]) -> list[float]:
        """Return each side's median over rounds in which they take turns."""
        found: list[list[float]] = [[] for _ in sides]
        for number in range(self._rounds):
            if number and self.is_quick and time.monotonic() - self._started > QUICK_SECONDS_MAX:
                break
            for side, figures in zip(sides, found, strict=True):
                figures.append(await side())
        return [statistics.median(figures) for figures in found]

    def _rate(self, **plan: Any) -> Callable[[], Awaitable[float]]:
        async def rate() -> float:
            return (await self._measured(**plan)).records_per_s

        return rate

    async def _measured(self, **plan: Any) -> Report:
        options = {"duration_s": self._seconds, "warmup_s": 0.2, "size": SIZE} | plan
        try:
            report = await measure(Plan(**options), self._ours.servers)
        except AngariumError:
            print(self._ours.last_words(), file=sys.stderr)
            raise
        if not report.is_right or report.failures:
            raise SystemExit(f"the records are not right: {report.verdict}, {report.failures}")
        return report


def _rounded(figure: float) -> float:
    return round(figure, 3 if figure < 100 else 1)


def _ratio(ours: float, other: float) -> float:
    return round(ours / other, 3)


def shown(key: str, figure: Figure) -> str:
    """Return one line of the table."""
    cells = [
        "-" if cell is None else f"{cell:,.3f}".rstrip("0").rstrip(".")
        for cell in (figure.ours, figure.peer_or_baseline, figure.ratio)
    ]
    further = ", ".join(f"{name} {cell:,.3f}" for name, cell in figure.further.items())
    return f"{key:28}{cells[0]:>16}{cells[1]:>16}{cells[2]:>10}   {further}".rstrip()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="within a minute, without loaded_mb")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--only", default="", metavar="KEY,...")
    options = parser.parse_args()
    peers = Peers(is_quick=options.quick)
    print(f"{'figure':28}{'ours':>16}{'other':>16}{'ratio':>10}", file=sys.stderr)
    uvloop.run(peers.run({key for key in options.only.split(",") if key}))
    if options.format == "json":
        told = {key: figure.as_json() for key, figure in peers.figures.items()}
        print(msgspec.json.format(msgspec.json.encode(told)).decode())


if __name__ == "__main__":
    main()
