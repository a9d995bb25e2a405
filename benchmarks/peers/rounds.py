"""The rounds: Angarium and a peer take turns, so that whatever the machine does hits both.

Peers come one after the other, each alone with our nodes: the idle ones of six clusters would be
no small load on two cores. A ratio is always between medians of rounds that alternated.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.empty_grpc import calls_per_s
from benchmarks.empty_grpc import running as empty_grpc
from benchmarks.peers.figures import Figure, Gathered, ratio, rounded, shown
from benchmarks.peers.known import peer_named
from benchmarks.peers.ours import Ours, memory_mb
from benchmarks.peers.port import NotInstalled, Peer
from benchmarks.peers.shapes import SIZE, Shapes

from angarium.bench.cluster import BenchCluster
from angarium.bench.plan import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Side = Callable[[], Awaitable[Mapping[str, float]]]
"""One round of one side: its figures by key."""

QUICK_SECONDS_MAX: Final = 52.0
"""A quick run begins no further round after this long, so that it is over within a minute."""

WARM_UP_ROUNDS: Final = 2
"""Of each setting before anything counts: a Java machine takes seconds to become what it is."""

TOPICS: Final = 20
RATE: Final = 1_000.0


class Line(NamedTuple):
    """One load, and the figures that a round of it gives."""

    keys: tuple[str, ...]
    ours: Side
    peer: Callable[[Shapes], Awaitable[Mapping[str, float]]]


class Rounds:
    """Our cluster, one peer after the other, and the figures so far."""

    def __init__(self, *, is_quick: bool, peers: Sequence[str], only: set[str]) -> None:
        self.about: dict[str, dict[str, str]] = {}
        self.failed: list[str] = []
        """Peers that gave up on the way; some of their figures are missing."""
        self._is_quick = is_quick
        self._peers = peers
        self._only = only
        self._rounds = 2 if is_quick else 3
        self._seconds = 0.8 if is_quick else 1.5
        self._started = time.monotonic()
        self._gathered: dict[str, Gathered] = {}
        self._alone: dict[str, Figure] = {}

    @property
    def figures(self) -> dict[str, Figure]:
        """Everything that was measured, by key."""
        beside = {key: gathered.figure(key) for key, gathered in self._gathered.items()}
        return {**beside, **self._alone}

    async def run(self) -> None:
        """Measure everything, or what `only` names."""
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
            cluster = BenchCluster(folder / "ours")
            stack.push_async_callback(asyncio.to_thread, cluster.stop)
            await cluster.start()
            self._ours = Ours(cluster, seconds=self._seconds)
            self._idle_mb = self._ours.memory_mb()
            for name in self._peers:
                began = time.monotonic()
                try:
                    async with self._running(peer_named(name, folder / name)) as peer:
                        await self._beside(name, peer)
                except NotInstalled as missing:
                    print(f"{name} is skipped; to have it:  {missing}", file=sys.stderr)
                except Exception:  # whatever its library raises: the others are still to come
                    self.failed.append(name)
                    traceback.print_exc()
                print(f"-- {name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
            await self._by_ourselves()

    # --- beside a peer ------------------------------------------------------------------------

    @asynccontextmanager
    async def _running(self, peer: Peer) -> AsyncIterator[Peer]:
        try:
            await peer.start()
            yield peer
            for setting in peer.settings:
                await setting.close()
        finally:
            await asyncio.to_thread(peer.stop)

    async def _beside(self, name: str, peer: Peer) -> None:
        for setting in peer.settings:
            self.about[setting.key] = {"versions": peer.versions, "promise": setting.promise}
        if self._is_wanted("idle_mb"):
            memory = {peer.settings[0].key: [memory_mb(list(peer.watched))]}
            self._add({"idle_mb": [self._idle_mb]}, {"idle_mb": memory})
        loads = {setting.key: Shapes(setting, seconds=self._seconds) for setting in peer.settings}
        lines = [line for line in self._lines() if any(map(self._is_wanted, line.keys))]
        if name == "nats" and self._is_wanted("performance_pub_sub"):
            await self._pub_sub(peer)
        if lines and not self._is_quick:
            for load in loads.values():
                for _ in range(WARM_UP_ROUNDS):
                    await load.batched()
                    await load.awaiting(60, connections=1)
        for line in lines:
            sides = [line.ours, *(_bound(line.peer, load) for load in loads.values())]
            own, *others = await self._alternated(sides)
            beside = {
                key: {
                    setting: other[key]
                    for setting, other in zip(loads, others, strict=True)
                    if key in other
                }
                for key in line.keys
            }
            self._add(own, beside)

    def _lines(self) -> list[Line]:
        ours = self._ours

        async def stored() -> dict[str, float]:
            batched = await ours.batched()
            as_batches, as_records = await ours.catch_up()
            return dict(zip(STORED, (batched, as_batches, as_records), strict=True))

        async def stored_by(load: Shapes) -> dict[str, float]:
            published, read = await load.batched()
            return dict(zip(STORED, (published, read, read), strict=True))

        async def end_to_end() -> dict[str, float]:
            return dict(zip(DELAYS, await ours.end_to_end(topics=TOPICS, rate=RATE), strict=True))

        async def end_to_end_by(load: Shapes) -> dict[str, float]:
            return dict(zip(DELAYS, await load.end_to_end(topics=TOPICS, rate=RATE), strict=True))

        return [
            Line(STORED, stored, stored_by),
            _line(
                "consistent_60_workers",
                lambda: ours.awaiting(60, connections=1),
                lambda load: load.awaiting(60, connections=1),
            ),
            _line(
                "consistent_60_connections",
                lambda: ours.awaiting(60, connections=60),
                lambda load: load.awaiting(60, connections=60),
            ),
            _line(
                "consistent_one_by_one_p50",
                ours.one_by_one_p50_ms,
                lambda load: load.one_by_one_p50_ms(),
            ),
            Line(DELAYS, end_to_end, end_to_end_by),
        ]

    async def _pub_sub(self, peer: Peer) -> None:
        from benchmarks.peers.nats_jetstream import NatsCluster, core_pub_sub  # noqa: PLC0415

        (cluster, *_) = peer.settings
        assert isinstance(cluster, NatsCluster)

        async def core() -> float:
            return await core_pub_sub(cluster, size=SIZE, seconds=self._seconds)

        key = "performance_pub_sub"
        own, other = await self._alternated([_keyed(key, self._ours.pub_sub), _keyed(key, core)])
        self._add(own, {key: {"nats": other[key]}})

    # --- by ourselves -------------------------------------------------------------------------

    async def _by_ourselves(self) -> None:
        if self._is_wanted("eventual_batched"):
            self._tell("eventual_batched", await self._eventual())
        if self._is_wanted("grpc_unary_60_workers"):
            self._tell("grpc_unary_60_workers", await self._grpc())
        if self._is_wanted("loaded_mb") and not self._is_quick:
            await self._ours.load()
            self._tell("loaded_mb", Figure(rounded(self._ours.memory_mb())))

    async def _eventual(self) -> Figure:
        found = await self._alternated(
            [_keyed("records", self._ours.eventual), _keyed("records", self._ours.batched)]
        )
        eventual, consistent = (_median(one, "records") for one in found)
        return Figure(rounded(eventual), rounded(consistent), ratio(eventual, consistent))

    async def _grpc(self) -> Figure:
        async with empty_grpc() as address:

            async def empty() -> float:
                return await calls_per_s(address, workers=60, size=SIZE, seconds=self._seconds)

            found = await self._alternated(
                [
                    _keyed("calls", lambda: self._ours.grpc(Route.LEADER)),
                    _keyed("calls", empty),
                    _keyed("calls", lambda: self._ours.grpc(Route.FOLLOWER)),
                ]
            )
        leader, base, follower = (_median(one, "calls") for one in found)
        further = {
            "through_follower": rounded(follower),
            "ratio_through_follower": ratio(follower, base),
        }
        return Figure(rounded(leader), rounded(base), ratio(leader, base), further)

    # --- rounds -------------------------------------------------------------------------------

    async def _alternated(self, sides: Sequence[Side]) -> list[dict[str, list[float]]]:
        """Return each side's figures over rounds in which they take turns."""
        found: list[dict[str, list[float]]] = [{} for _ in sides]
        for number in range(self._rounds):
            if number and self._is_quick and time.monotonic() - self._started > QUICK_SECONDS_MAX:
                break
            for side, figures in zip(sides, found, strict=True):
                for key, figure in (await side()).items():
                    figures.setdefault(key, []).append(figure)
        return found

    def _is_wanted(self, key: str) -> bool:
        return not self._only or key in self._only

    def _add(
        self,
        ours: Mapping[str, list[float]],
        peers: Mapping[str, Mapping[str, list[float]]],
    ) -> None:
        for key, figures in ours.items():
            gathered = self._gathered.setdefault(key, Gathered())
            gathered.add(figures, peers[key])
            print(shown(key, gathered.figure(key)), file=sys.stderr, flush=True)

    def _tell(self, key: str, figure: Figure) -> None:
        self._alone[key] = figure
        print(shown(key, figure), file=sys.stderr, flush=True)


STORED: Final = ("consistent_batched", "catch_up_batches", "catch_up_records")
DELAYS: Final = ("end_to_end_p50_ms", "end_to_end_p99_ms")

KEYS: Final = (
    "idle_mb",
    *STORED,
    "consistent_60_workers",
    "consistent_60_connections",
    "consistent_one_by_one_p50",
    *DELAYS,
    "performance_pub_sub",
    "eventual_batched",
    "grpc_unary_60_workers",
    "loaded_mb",
)
"""Everything that can be asked for."""


def _line(
    key: str,
    ours: Callable[[], Awaitable[float]],
    peer: Callable[[Shapes], Awaitable[float]],
) -> Line:
    async def by_peer(load: Shapes) -> dict[str, float]:
        return {key: await peer(load)}

    return Line((key,), _keyed(key, ours), by_peer)


def _keyed(key: str, figure: Callable[[], Awaitable[float]]) -> Side:
    async def side() -> dict[str, float]:
        return {key: await figure()}

    return side


def _bound(
    peer: Callable[[Shapes], Awaitable[Mapping[str, float]]], load: Shapes
) -> Callable[[], Awaitable[Mapping[str, float]]]:
    return lambda: peer(load)


def _median(figures: Mapping[str, list[float]], key: str) -> float:
    return statistics.median(figures[key])
