"""What a record alone costs in each process, in processor time and wake-ups, door by door.

    make bench ONLY=rounds                                 # about 8 minutes; writes docs/rounds.*
    python -m benchmarks.rounds --quick [--format json]    # about 3 minutes; writes nothing

Each shape of load goes through each door in each mode, over three nodes of this machine with three
replicas. Beside them the same load on what cannot be had for less: a bare quorum write in Python
(`benchmarks.bare_quorum`), an empty handler of each door's server, and NATS JetStream, synced and
not, if the extra `peers` is installed. Every record of ours is read back and checked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop
from benchmarks.bare_quorum import BarePublisher
from benchmarks.bare_quorum import running as bare_quorum
from benchmarks.empty_doors import EmptyPublisher
from benchmarks.empty_doors import running as empty_door
from benchmarks.http_door import empty_server as empty_http
from benchmarks.rounds_page import Row, shown, written

from angarium.bench.cluster import HOST, BenchCluster
from angarium.bench.drivers.grpc import GrpcDriver
from angarium.bench.drivers.http import HttpDriver
from angarium.bench.latency import latency
from angarium.bench.load import Window, Worker, probe
from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Scenario
from angarium.bench.resources import Usage, Watched, own_usage, usage
from angarium.bench.stamps import Stamps
from angarium.bench.ways import Ways
from angarium.ids import TopicPartition
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.peers.nats_jetstream import NatsClient, NatsCluster

    from angarium.bench.drivers.port import Publisher

SIZE: Final = 100
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "one worker": {"workers": 1},
    "60 workers": {"workers": 60},
    "60 connections": {"workers": 60, "connections": 60},
    "20 topics x 15/s": {"workers": 20, "topics": 20, "rate": 300.0},
    "20 topics x 50/s": {"workers": 20, "topics": 20, "rate": 1_000.0},
}
DOORS: Final = (Protocol.WIRE, Protocol.GRPC, Protocol.REST, Protocol.GRAPHQL)
MODES: Final = tuple(DeliveryMode)


class Rounds:
    """Everything that is measured, and what was found."""

    def __init__(self, *, seconds: float) -> None:
        self.rows: list[Row] = []
        self._seconds = seconds
        self._stack = AsyncExitStack()

    async def run(self) -> None:
        """Measure every shape: all baselines first, then every door and mode."""
        async with self._stack:
            kept = tempfile.TemporaryDirectory(prefix="rounds-")
            folder = Path(self._stack.enter_context(kept))
            ours = BenchCluster(folder / "ours")
            await self._stack.enter_async_context(ours)
            beside = await self._baselines(folder)
            for shape, options in SHAPES.items():
                plan = Plan(duration_s=self._seconds, warmup_s=0.3, size=SIZE, **options)
                for name, (connect, watched) in beside.items():
                    self._add(await loaded(plan, shape, name, connect, watched))
                for door in DOORS:
                    for mode in MODES:
                        self._add(await self._ours(ours, shape, door, mode, options))

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        print(shown(row), file=sys.stderr, flush=True)

    async def _ours(
        self,
        cluster: BenchCluster,
        shape: str,
        door: Protocol,
        mode: DeliveryMode,
        options: dict[str, Any],
    ) -> Row:
        # PERFORMANCE stores nothing to read back: there a subscriber receives meanwhile.
        is_stored = mode is not DeliveryMode.PERFORMANCE
        plan = Plan(
            protocol=door,
            mode=mode,
            scenario=Scenario.PUBLISH if is_stored else Scenario.LIVE,
            duration_s=self._seconds,
            warmup_s=0.3,
            size=SIZE,
            **options,
        )
        report = await measure(plan, cluster.servers, [Watched(one.pid) for one in cluster.nodes])
        if not report.is_right or report.failures:
            raise SystemExit(f"the records are not right: {report.verdict}, {report.failures}")
        assert report.publish is not None
        return Row.of(
            shape,
            f"{door}, {mode.name.lower()}",
            records=report.records,
            seconds=report.seconds,
            p50_ms=report.publish.p50_ms,
            p99_ms=report.publish.p99_ms,
            client=(report.client_cpu_s, report.client_wakeups),
            servers=[(one.cpu_s, one.wakeups) for one in report.usage],
        )

    # --- what it is put beside --------------------------------------------------------------

    async def _baselines(
        self, folder: Path
    ) -> dict[str, tuple[Callable[[], Awaitable[Publisher]], list[Watched]]]:
        enter = self._stack.enter_async_context
        bare_port, bare = await enter(bare_quorum(folder / "bare"))
        wire_port, wire = await enter(empty_door("wire"))
        http_port, http = await enter(empty_http())
        grpc_port, grpc = await enter(empty_door("grpc"))
        mode = DeliveryMode.CONSISTENT
        empty_rest = HttpDriver(empty_ways(http_port), mode, is_graphql=False)
        empty_unary = GrpcDriver(empty_ways(grpc_port), mode, is_streaming=False)
        beside: dict[str, tuple[Callable[[], Awaitable[Publisher]], list[Watched]]] = {
            "bare quorum": (lambda: BarePublisher.connected(bare_port), bare),
            "wire, empty handler": (
                lambda: EmptyPublisher.connected(wire_port),
                [Watched(wire)],
            ),
            "grpc, empty handler": (empty_unary.publisher, [Watched(grpc)]),
            "rest, empty handler": (empty_rest.publisher, [Watched(http)]),
        }
        if find_spec("nats") is not None:
            from benchmarks.peers import nats_jetstream  # noqa: PLC0415

            for is_synced, name in ((True, "NATS R3, synced"), (False, "NATS R3, not synced")):
                cluster = nats_jetstream.NatsCluster(
                    folder / f"nats-{is_synced}", sync_always=is_synced
                )
                self._stack.push_async_callback(asyncio.to_thread, cluster.stop)
                await cluster.start()
                self._stack.push_async_callback(cluster.close)
                for one in partitions(20):
                    await cluster.make_topic(one.topic)
                beside[name] = (
                    lambda cluster=cluster: NatsPublisher.connected(cluster),  # type: ignore[misc]
                    cluster.watched,
                )
        return beside


class NatsPublisher:
    """A client of NATS, as the publishers of `angarium.bench` are."""

    def __init__(self, client: NatsClient) -> None:
        self._client = client

    @classmethod
    async def connected(cls, cluster: NatsCluster) -> NatsPublisher:
        """Return one with a connection of its own."""
        return cls(await cluster.client(is_alone=False))

    async def publish(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Publish a record and wait for its acknowledgement."""
        await self._client.publish(partition.topic, values[0])

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()


def partitions(count: int) -> list[TopicPartition]:
    """Return where others than Angarium are published to: topics of one partition each."""
    return [TopicPartition(f"rounds-{number}", 0) for number in range(count)]


def empty_ways(port: int) -> Ways:
    """Return the way to one port, whatever is published."""
    address = f"{HOST}:{port}"
    return Ways({one: [address] for one in partitions(20)}, address)


async def loaded(
    plan: Plan,
    shape: str,
    name: str,
    connect: Callable[[], Awaitable[Publisher]],
    watched: Sequence[Watched],
) -> Row:
    """Put the load of `plan` on somebody else than Angarium."""
    stamps, targets = Stamps(plan.size), partitions(plan.topics)
    publishers = [await connect() for _ in range(plan.connections)]
    try:
        for publisher in publishers:
            await probe(publisher, targets, stamps)
        workers = [
            Worker(
                number,
                publishers[number % len(publishers)],
                plan=plan,
                partitions=targets,
                stamps=stamps,
            )
            for number in range(plan.workers)
        ]
        begin, window = time.monotonic_ns(), Window.of(plan)
        async with asyncio.TaskGroup() as load:
            watching = load.create_task(_watched(window, watched))
            for worker in workers:
                load.create_task(worker.run(window, begin))
    finally:
        for publisher in publishers:
            await publisher.close()
    client, servers = watching.result()
    works = [worker.work for worker in workers]
    if any(work.failed for work in works):
        raise SystemExit(f"{name} failed: {[work.failed for work in works if work.failed][:1]}")
    times = latency([one for work in works for one in work.latencies])
    assert times is not None
    return Row.of(
        shape,
        name,
        records=sum(work.acknowledged_in_window for work in works),
        seconds=window.seconds,
        p50_ms=times.p50_ms,
        p99_ms=times.p99_ms,
        client=client,
        servers=servers,
    )


async def _watched(
    window: Window, watched: Sequence[Watched]
) -> tuple[tuple[float, int], list[tuple[float, int]]]:
    """Return what the client and each server used while the window was open."""
    await asyncio.sleep(max(0.0, (window.start - time.monotonic_ns()) / 1e9))
    own, before = own_usage(), [usage(one) for one in watched]
    await asyncio.sleep(max(0.0, (window.end - time.monotonic_ns()) / 1e9))
    after, now = [usage(one) for one in watched], own_usage()
    return (now[0] - own[0], now[1] - own[1]), list(map(_used, before, after))


def _used(before: Usage | None, after: Usage | None) -> tuple[float, int]:
    assert before is not None, "a server ended"
    assert after is not None, "a server ended"
    return after.cpu_s - before.cpu_s, after.wakeups - before.wakeups


def main() -> None:
    """Measure, print, and write the page unless it is to be quick."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short windows; no page is written")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args()
    rounds = Rounds(seconds=0.7 if options.quick else 3.0)
    load = os.getloadavg()[0]
    uvloop.run(rounds.run())
    told = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load_before": round(load, 1),
        "rows": [row._asdict() for row in rounds.rows],
    }
    if options.format == "json":
        print(json.dumps(told, indent=1))
    if not options.quick:
        written(told)


if __name__ == "__main__":
    main()
