"""Three regions of three nodes behind delays, beside a cluster in one region, in one run.

    python -m benchmarks.regions [--one-way-ms 80] [--rate 1000] [--topics 20] [--seconds 10]
                                 [--alike] [--only publish,kill] [--json FILE]

Both clusters are real processes reached through the same proxies; between regions those hold bytes
back for the one-way delay and count them (`angarium.testing.cluster.wan`). It measures: a publish
to a homed topic; delivery in the region of the publisher and in another one, at a rate over several
topics; bytes that cross while a backlog is read at the nearest replica; the loss of a whole region;
and what a record costs when a cluster grows from one node to six. A figure that the machine is too
small for is taken at a lower rate, which is printed with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import struct
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from angarium import Client
from angarium.api import TopicConfig
from angarium.cli.output import print_table
from angarium.client.settings import ClientSettings
from angarium.errors import AngariumError
from angarium.testing.cluster import ProcessCluster
from angarium.testing.cluster.wan import RegionLoop, WanNetwork, calling_from

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from angarium.ids import NodeId

REGIONS: Final = ("east", "west", "south")
NODES_PER_REGION: Final = 3
SIZE: Final = 100
STAMP: Final = struct.Struct("<d")
KEPT_UP: Final = 0.95
"""A rate counts as reached if so much of it was published in the time."""

GROWTH_BATCH: Final = 500
GROWTH_RECORDS: Final = 5
"""So many times `--records` are published for each node: processor time is counted in 10 ms."""

IDLE_S: Final = 5.0
SETTLE_S: Final = 180.0
DRAIN_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    single: float | None
    regions: float | None
    unit: str
    goal: str
    remark: str = ""

    @property
    def ratio(self) -> str:
        """How many times the single-region figure it is."""
        if not self.single or self.regions is None:
            return ""
        return f"{self.regions / self.single:.2f}"


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and where its clients are."""

    cluster: ProcessCluster
    network: WanNetwork

    def client(self, region: str) -> Client:
        """Return a client that dials from a region, and says so where clients can."""
        said: dict[str, Any] = {}
        if any(field.name == "region" for field in fields(ClientSettings)):
            said["region"] = region
        nodes = self.cluster.nodes.values()
        near = [one.address for one in nodes if one.region == region]
        return Client(*near, settings=ClientSettings(**said))

    def nodes_in(self, region: str) -> list[NodeId]:
        """Return the nodes of a region."""
        return [one for one, node in self.cluster.nodes.items() if node.region == region]

    async def create(self, topic: str, *, partitions: int, config: TopicConfig) -> None:
        """Make a topic and wait until it can be used."""
        someone = await self.cluster.someone()
        await someone.create_topic(topic, partitions=partitions, config=config)
        await self.cluster.settled(topics=[topic], within_s=SETTLE_S)


async def opened(
    stack: AsyncExitStack, regions: Sequence[str], nodes: int, one_way_s: float
) -> Place:
    """Start a cluster whose nodes stand in `regions`, one after the other."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    network = WanNetwork(regions, one_way_s=one_way_s)
    cluster = ProcessCluster(folder, nodes=nodes, network=network)
    return Place(await stack.enter_async_context(cluster), network)


# --- publishing ---------------------------------------------------------------------------------


async def publish_ms(place: Place, topic: str, *, times: int) -> float:
    """Return the median of publishes, one after the other, from the first region."""
    region = place.network.regions[0]
    with calling_from(place.network, region):
        async with place.client(region) as client:
            took = []
            for number in range(times + 20):
                began = time.perf_counter()
                await client.publish(topic, b"x" * SIZE)
                if number >= 20:
                    took.append(time.perf_counter() - began)
    return statistics.median(took) * 1_000


# --- delivery -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Delivery:
    """How long records took from their publish to their reader."""

    p50_ms: float
    p99_ms: float
    rate: float
    """Records a second that were published."""


async def delivery(
    place: Place, topics: Sequence[str], *, reader: str, rate: int, seconds: float
) -> Delivery:
    """Publish from the first region at a rate, and read in another or the same one."""
    network, writer = place.network, place.network.regions[0]
    took: list[float] = []
    sent = 0
    async with AsyncExitStack() as stack:
        with calling_from(network, reader):
            reading = await stack.enter_async_context(place.client(reader))
            records = await stack.enter_async_context(reading.subscribe(list(topics)))
        with calling_from(network, writer):
            writing = await stack.enter_async_context(place.client(writer))

        async def read() -> None:
            async for record in records:
                (at,) = STAMP.unpack_from(record.value or b"")
                took.append(time.perf_counter() - at)

        with calling_from(network, reader):
            task = asyncio.create_task(read())
        try:
            # Whoever reads is there before the first record counts.
            for topic in topics:
                await writing.publish(topic, _stamped())
            await _until(lambda: len(took) >= len(topics), DRAIN_S)
            took.clear()
            with calling_from(network, writer):
                sent, lasted = await _publish_at(writing, topics, rate=rate, seconds=seconds)
            await _until(lambda: len(took) >= sent, DRAIN_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    took.sort()
    if len(took) < sent:
        raise SystemExit(f"{sent - len(took)} of {sent} records were not delivered to {reader}")
    return Delivery(
        statistics.median(took) * 1_000, took[int(len(took) * 0.99)] * 1_000, sent / lasted
    )


async def _publish_at(
    client: Client, topics: Sequence[str], *, rate: int, seconds: float
) -> tuple[int, float]:
    """Publish at a rate for so long; return how many, and how long it took."""
    began, sent, waiting = time.perf_counter(), 0, set()
    while (now := time.perf_counter() - began) < seconds:
        while sent < now * rate:
            call = asyncio.ensure_future(client.publish(topics[sent % len(topics)], _stamped()))
            waiting.add(call)
            call.add_done_callback(waiting.discard)
            sent += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*waiting)
    return sent, time.perf_counter() - began


def _stamped() -> bytes:
    return STAMP.pack(time.perf_counter()) + b"x" * (SIZE - STAMP.size)


async def _until(done: Callable[[], bool], within_s: float) -> None:
    deadline = time.perf_counter() + within_s
    while not done() and time.perf_counter() < deadline:  # noqa: ASYNC110 - seen from outside
        await asyncio.sleep(0.01)


async def kept_up(
    place: Place, topics: Sequence[str], *, reader: str, rate: int, seconds: float
) -> Delivery:
    """Measure delivery at the highest of a few rates that the machine keeps up with."""
    while True:
        found = await delivery(place, topics, reader=reader, rate=rate, seconds=seconds)
        if found.rate >= KEPT_UP * rate or rate <= 50:
            return found
        rate //= 2


# --- what crosses -------------------------------------------------------------------------------


async def crossing_of_reads(place: Place, topic: str, *, records: int) -> tuple[int, int, float]:
    """Read a backlog in another region; return its bytes, those that crossed for it, and seconds.

    What crosses anyway in as much time, heartbeats and the like, is measured before and taken off.
    """
    network, (writer, reader, *_) = place.network, place.network.regions
    with calling_from(network, writer):
        async with place.client(writer) as client:
            for _ in range(0, records, 500):
                await client.publish_batch(topic, [b"x" * SIZE] * 500)
    await place.cluster.settled(topics=[topic], within_s=SETTLE_S)
    await asyncio.sleep(3 + 4 * network.one_way_s)
    crossed, began = network.crossed_bytes(reader), time.perf_counter()
    await asyncio.sleep(3.0)
    idle_rate = (network.crossed_bytes(reader) - crossed) / (time.perf_counter() - began)
    with calling_from(network, reader):
        async with place.client(reader) as client:
            # Its way in and what it has to know of the topic are not part of reading.
            await client.describe_topic(topic)
            crossed, began, seen = network.crossed_bytes(reader), time.perf_counter(), 0
            async with client.subscribe(topic, start="earliest") as stream:
                async for _ in stream:
                    seen += 1
                    if seen >= records:
                        break
            took = time.perf_counter() - began
            crossing = network.crossed_bytes(reader) - crossed - idle_rate * took
    return records * SIZE, max(0, round(crossing)), took


# --- the loss of a region -----------------------------------------------------------------------


async def lost_region(place: Place, topic: str, *, publishes: int) -> tuple[int, int, float]:
    """Kill the region that leads; return records acknowledged, lost, and seconds to the next."""
    cluster, network = place.cluster, place.network
    gone = cluster.nodes[await cluster.leader(topic)].region
    elsewhere = next(one for one in network.regions if one != gone)
    acked: list[bytes] = []
    moments: list[float] = []
    is_over = False
    with calling_from(network, elsewhere):
        async with place.client(elsewhere) as client:

            async def publish(worker: int) -> None:
                for number in range(1_000_000):
                    value = b"%d.%d" % (worker, number)
                    with suppress(AngariumError):
                        await client.publish(topic, value)
                        acked.append(value)
                        moments.append(time.perf_counter())
                    if is_over:
                        return

            workers = [asyncio.create_task(publish(worker)) for worker in range(8)]
            await _until(lambda: len(acked) >= publishes, SETTLE_S)
            for node in place.nodes_in(gone):
                cluster.nodes[node].kill()
            killed = time.perf_counter()
            # A publish that was under way comes back at once; what counts is one begun afterwards.
            first = await _first_after(moments, killed + 3 * network.one_way_s)
            await _until(lambda: len(moments) > 0 and moments[-1] > first + 1.0, SETTLE_S)
            is_over = True
            await asyncio.gather(*workers)
            found = [one async for one in _everything(client, topic, set(acked))]
    return len(acked), len(set(acked) - set(found)), first - killed


async def _first_after(moments: list[float], time_from: float) -> float:
    await _until(lambda: bool(moments) and moments[-1] > time_from, SETTLE_S)
    return next(one for one in moments if one > time_from)


async def _everything(client: Client, topic: str, wanted: set[bytes]) -> AsyncIterator[bytes]:
    """Yield the records of a topic until all that are wanted were seen, or none come any more."""
    missing = set(wanted)
    async with client.subscribe(topic, start="earliest") as stream:
        source = aiter(stream)
        while missing:
            try:
                record = await asyncio.wait_for(anext(source), DRAIN_S)
            except TimeoutError:
                return
            value = bytes(record.value or b"")
            missing.discard(value)
            yield value


# --- growth -------------------------------------------------------------------------------------


async def cost_of_records(nodes: int, *, records: int) -> tuple[float, float, int]:
    """Return µs of processor time for each record, on all nodes, and how uneven leaders are.

    First while all nodes are published to at once, then one after the other: nodes that share too
    few processors take them from each other in the first, and do not in the second.
    """
    async with AsyncExitStack() as stack:
        place = await opened(stack, ("here",), nodes, 0.0)
        config = TopicConfig(replication=1)
        await place.create("grown", partitions=2 * nodes, config=config)
        info = await (await place.cluster.someone()).describe("grown")
        led = [
            [one.number for one in info.partitions if one.leader == node]
            for node in place.cluster.ids
        ]
        processes = list(place.cluster.nodes.values())
        rounds = max(1, records // (2 * GROWTH_BATCH))
        values = [b"x" * SIZE] * GROWTH_BATCH
        async with place.client("here") as client:

            async def publish(partitions: Sequence[int], rounds: int) -> None:
                # A batch to each partition at a time: batches are alike, however many nodes.
                for _ in range(rounds):
                    await asyncio.gather(
                        *(
                            client.publish_batch("grown", values, partition=one)
                            for one in partitions
                        )
                    )

            def used_s() -> float:
                return sum(one.processor_seconds() for one in processes)

            async def cost(turns: Sequence[Sequence[int]]) -> float:
                # What nodes do anyway in as much time, longer on a busy machine, is taken off.
                before, began = used_s(), time.perf_counter()
                await asyncio.sleep(IDLE_S)
                idle_rate = (used_s() - before) / (time.perf_counter() - began)
                before, began = used_s(), time.perf_counter()
                for partitions in turns:
                    await publish(partitions, rounds)
                used = used_s() - before - idle_rate * (time.perf_counter() - began)
                return used * 1e6 / (rounds * 2 * nodes * GROWTH_BATCH)

            everything = range(2 * nodes)
            await publish(everything, 2)
            at_once, in_turns = await cost([everything]), await cost(led)
    leads = [*map(len, led)]
    return at_once, in_turns, max(leads) - min(leads)


# --- all of it ----------------------------------------------------------------------------------


async def measured(options: argparse.Namespace) -> list[Row]:
    """Run what was asked for; return the table's rows."""
    only = set(options.only.split(",")) if options.only else None
    rows: list[Row] = []

    def wants(*names: str) -> bool:
        return only is None or bool(only & set(names))

    if wants("publish", "delivery", "reads", "kill"):
        async with AsyncExitStack() as stack:
            rows += await _beside(stack, options, wants)
    if wants("growth"):
        bases: list[float] = []
        for nodes in options.sizes:
            *costs, uneven = await cost_of_records(nodes, records=GROWTH_RECORDS * options.records)
            bases = bases or costs
            for how, base, cost in zip(("at once", "in turns"), bases, costs, strict=True):
                what = f"processor time per record, {nodes} node(s) {how}"
                told = f"leaders even within {uneven}"
                rows.append(Row(what, base, cost, "µs", "≤ 1.15 x", told))
    return rows


async def _beside(
    stack: AsyncExitStack, options: argparse.Namespace, wants: Callable[..., bool]
) -> list[Row]:
    one_way_s = options.one_way_ms / 1_000
    nodes = len(REGIONS) * options.per_region
    single = await opened(stack, ("east",), nodes if options.alike else NODES_PER_REGION, 0.0)
    wide = await opened(stack, REGIONS, nodes, one_way_s)
    rows: list[Row] = []
    names = [f"orders-{number}" for number in range(options.topics)]
    # A homed partition has its voters and a copy in each other region.
    plain = TopicConfig(replication=5) if options.alike else TopicConfig()
    homed = TopicConfig(placement="homed", regions=REGIONS, readers=("*",))
    for name in names if wants("publish", "delivery", "reads") else ():
        await single.create(name, partitions=1, config=plain)
        await wide.create(name, partitions=len(REGIONS), config=homed)
    if wants("publish"):
        times = options.publishes
        alone, far = (
            await publish_ms(single, names[0], times=times),
            await publish_ms(wide, names[0], times=times),
        )
        rows.append(Row("publish to a homed topic, p50", alone, far, "ms", "≤ 1.5 x"))
    if wants("delivery"):
        rows += await _deliveries(single, wide, names, options)
    if wants("reads"):
        size, crossing, took = await crossing_of_reads(wide, names[0], records=options.records)
        remark = f"for {size:,} bytes of records, in {took:.1f} s"
        rows.append(Row("bytes that cross for nearest reads", None, crossing, "bytes", "0", remark))
    if wants("kill"):
        config = TopicConfig(replication=3)
        await wide.create("spread", partitions=1, config=config)
        acked, lost, first = await lost_region(wide, "spread", publishes=options.publishes)
        remark = f"of {acked:,} acknowledged"
        rows.append(Row("a region killed: records lost", None, lost, "records", "0", remark))
        rows.append(Row("a region killed: first publish", None, first, "s", "≤ 5 s"))
    return rows


async def _deliveries(
    single: Place, wide: Place, names: Sequence[str], options: argparse.Namespace
) -> list[Row]:
    alone = await kept_up(single, names, reader="east", rate=options.rate, seconds=options.seconds)
    rate = min(options.rate, max(50, round(alone.rate)))
    rows = []
    for reader, what, goal in (
        ("east", "delivery in the same region", "≤ 50 ms or 1.2 x"),
        ("west", "delivery to another region", "≤ one way + the same"),
    ):
        far = await kept_up(wide, names, reader=reader, rate=rate, seconds=options.seconds)
        remark = f"{alone.rate:,.0f}/s and {far.rate:,.0f}/s over {len(names)} topics"
        rows.append(Row(f"{what}, p50", alone.p50_ms, far.p50_ms, "ms", "", remark))
        rows.append(Row(f"{what}, p99", alone.p99_ms, far.p99_ms, "ms", goal, remark))
    return rows


def parser() -> argparse.ArgumentParser:
    """Return what can be chosen."""
    chosen = argparse.ArgumentParser(description=__doc__)
    chosen.add_argument("--one-way-ms", type=float, default=80.0)
    chosen.add_argument("--per-region", type=int, default=NODES_PER_REGION)
    chosen.add_argument(
        "--alike",
        action="store_true",
        help="give the one region as many nodes and copies: what is left is the distance",
    )
    chosen.add_argument("--rate", type=int, default=1_000)
    chosen.add_argument("--topics", type=int, default=20)
    chosen.add_argument("--seconds", type=float, default=10.0)
    chosen.add_argument("--publishes", type=int, default=200)
    chosen.add_argument("--records", type=int, default=20_000)
    chosen.add_argument("--sizes", type=int, nargs="+", default=[1, 3, 6])
    chosen.add_argument("--only", default="", help="publish, delivery, reads, kill, growth")
    chosen.add_argument("--json", type=Path, help="write the figures there as well")
    return chosen


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Measure, print a table, and write JSON if asked to."""
    options = parser().parse_args(arguments)
    with asyncio.Runner(loop_factory=RegionLoop) as runner:
        rows = runner.run(measured(options))
    heads = ("", "one region", "three regions", "unit", "ratio", "goal", "")
    print_table(
        heads,
        [
            (
                one.what,
                "" if one.single is None else f"{one.single:,.2f}",
                "" if one.regions is None else f"{one.regions:,.2f}",
                one.unit,
                one.ratio,
                one.goal,
                one.remark,
            )
            for one in rows
        ],
        none="",
    )
    if options.json is not None:
        told = [{name: getattr(one, name) for name in Row.__slots__} for one in rows]
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()
