"""Flood every door with every declared kind of frame, beside a publisher, and print a table.

python -m tests.floods [--only WORD] [--rounds 6] [--seconds 0.5] [--write]

A node with authentication runs in a process of its own, and so do 8 flooding connections and a
sink. The publisher publishes records of 100 bytes over the wire, CONSISTENT, 64 at a time. The
node's data lies in memory where the system has such a folder: how fast a disk syncs is not the
question.

A cell is tried in rounds. In each the publisher's rate is measured beside the flood, and then
beside the same flood of the sink, which reads as many bytes a second as the node has just taken of
them, and does nothing with them: what the flooding process itself takes of the processor is on both
sides. The *ratio* of a round is the first rate divided by the second one, that of a cell the median
of its rounds. Beside it stands the same of the records for each second of processor time of the
node's event loop. Other work on the machine moves both. So before the rounds, while nothing is
published, it is measured how much of its time the loop works for the flood alone. The exit status
is 1 if a ratio is below 0.8.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop
from tests.cluster.command_line import environment
from tests.cluster.secured import ADMIN, PASSWORD, SecuredNode
from tests.floods.frames import Cell, Proof, cells

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.wire.flooding import Door

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "trust" / "floods.md"
RATIO_LEAST: Final = 0.8
PUBLISHERS: Final = 64
MEMORY: Final = Path("/dev/shm")
SETTLE_S: Final = 0.25
"""From the beginning of a flood to that of its measurement."""


@dataclass(slots=True)
class Result:
    """What was measured of one cell."""

    cell: Cell
    beside: list[float] = field(default_factory=list)
    baseline: list[float] = field(default_factory=list)
    of_processor: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    """Records for each second of the loop's processor time, beside the flood and beside the
    sink."""
    share: float = 0.0
    """Part of its time that the node's event loop works for the flood alone."""
    bytes_taken: int = 0
    connections: int = 0
    slowest_ms: float = 0.0

    @property
    def ratio(self) -> float:
        """The median over the rounds of the rate beside the flood, of that beside the sink."""
        pairs = zip(self.beside, self.baseline, strict=True)
        return statistics.median([one / max(other, 1.0) for one, other in pairs])

    @property
    def processor_ratio(self) -> float:
        """The same of the records for each second of processor time of the node's event loop."""
        pairs = zip(self.of_processor[False], self.of_processor[True], strict=True)
        return statistics.median([one / max(other, 1.0) for one, other in pairs])


class Worker:
    """A process that takes orders."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.floods.flooder", *words],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self._line()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def order(self, said: object) -> None:
        """Say what to do."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()

    async def answer(self) -> Any:
        """Return what it answers."""
        return await asyncio.to_thread(self._line)

    def _line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


class Publisher:
    """Publishes without a pause, and counts."""

    def __init__(self, client: Client) -> None:
        self.acknowledged = 0
        self._client = client
        self._may = asyncio.Event()
        self._may.set()
        self._tasks = [asyncio.ensure_future(self._publish()) for _ in range(PUBLISHERS)]

    async def _publish(self) -> None:
        value = bytes(100)
        while True:
            await self._may.wait()
            try:
                await self._client.publish("orders", value)
            except AngariumError:
                await asyncio.sleep(0.01)
            else:
                self.acknowledged += 1

    async def rate(self, seconds: float) -> float:
        """Return how many records a second are acknowledged now."""
        before, began = self.acknowledged, time.monotonic()
        await asyncio.sleep(seconds)
        return (self.acknowledged - before) / (time.monotonic() - began)

    async def pause(self) -> None:
        """Publish nothing until `go_on`."""
        self._may.clear()
        await asyncio.sleep(SETTLE_S)

    def go_on(self) -> None:
        """Publish again."""
        self._may.set()

    def stop(self) -> None:
        """Publish no more."""
        for task in self._tasks:
            task.cancel()


class Trial:
    """A node, a publisher, flooding connections and a sink."""

    def __init__(self, node: SecuredNode, flooder: Worker, sink: Worker) -> None:
        self._node = node
        self._flooder = flooder
        self._sink = sink
        self._proof = Proof(f"flora:{PASSWORD}", "")
        self._publisher: Publisher

    async def prepare(self) -> Client:
        """Make users, a topic and a token; return the publisher's client, which has to be
        closed."""
        deadline = time.monotonic() + 120
        while True:
            client = Client(self._node.address, user="admin", password=ADMIN)
            try:
                await client.connect()
                break
            except AngariumError:
                await client.close()
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
        await client.create_topic("orders", partitions=1, config=TopicConfig())
        await client.create_user("flora", password=PASSWORD, roles=["publisher"])
        token = await client.create_token("flora", "flood")
        self._proof = self._proof._replace(token=token.secret)
        self._publisher = Publisher(client)
        await self._publisher.rate(2.0)
        return client

    async def tried(self, cell: Cell, *, rounds: int, seconds: float) -> Result:
        """Return what is measured of a cell."""
        result = Result(cell)
        await self._publisher.pause()
        result.share = await self._share_of_loop(cell, 2 * seconds)
        self._publisher.go_on()
        for _ in range(rounds):
            done = await self._flooded(cell, result, seconds, port=self._port_of(cell.door))
            result.bytes_taken += done["bytes"]
            result.connections += done["connections"]
            self._sink.order(done["bytes"] / (seconds + SETTLE_S))
            await self._sink.answer()
            await self._flooded(cell, result, seconds, port=self._sink.first, to_sink=True)
        return result

    async def _share_of_loop(self, cell: Cell, seconds: float) -> float:
        """Return how much of its time the node's event loop works while there is only the flood."""
        self._flooder.order(self._order(cell, seconds, port=self._port_of(cell.door)))
        await asyncio.sleep(SETTLE_S)
        processor, began = self._processor_s(), time.monotonic()
        await asyncio.sleep(seconds)
        share = (self._processor_s() - processor) / (time.monotonic() - began)
        await self._flooder.answer()
        await asyncio.sleep(SETTLE_S)
        return share

    def _order(
        self, cell: Cell, seconds: float, *, port: int, to_sink: bool = False
    ) -> dict[str, object]:
        return {
            "door": cell.door.value,
            "kind": cell.kind,
            "is_proven": cell.is_proven,
            **self._proof._asdict(),
            "port": port,
            "to_sink": to_sink,
            "seconds": SETTLE_S + seconds,
        }

    async def _flooded(
        self, cell: Cell, result: Result, seconds: float, *, port: int, to_sink: bool = False
    ) -> dict[str, int]:
        self._flooder.order(self._order(cell, seconds, port=port, to_sink=to_sink))
        answering = asyncio.ensure_future(self._flooder.answer())
        await asyncio.sleep(SETTLE_S)
        looking = asyncio.ensure_future(asyncio.to_thread(self._health_ms, seconds))
        processor = self._processor_s()
        rate = await self._publisher.rate(seconds)
        used = self._processor_s() - processor
        result.of_processor[to_sink].append(rate * seconds / max(used, 1e-6))
        slowest = await looking
        if to_sink:
            result.baseline.append(rate)
        else:
            result.beside.append(rate)
            result.slowest_ms = max(result.slowest_ms, slowest)
        done: dict[str, int] = await answering
        await asyncio.sleep(SETTLE_S)
        return done

    def _processor_s(self) -> float:
        """Return the processor time of the thread of the node's event loop."""
        assert self._node.process is not None
        number = self._node.process.pid
        used = Path(f"/proc/{number}/task/{number}/schedstat").read_text(encoding="ascii")
        return int(used.split()[0]) / 1e9

    def _health_ms(self, seconds: float) -> float:
        """Return how long the slowest of some questions to /healthz took, each on a new
        connection."""
        slowest, deadline = 0.0, time.monotonic() + seconds
        while time.monotonic() < deadline:
            began = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{self._node.http}/healthz") as answer:
                answer.read()
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.1)
        return slowest * 1_000

    def _port_of(self, door: Door) -> int:
        node = self._node
        ports = {Door.WIRE: node.wire, Door.GRPC: node.grpc}
        return ports.get(door, node.http)

    def stop(self) -> None:
        """Publish no more."""
        self._publisher.stop()


COLUMNS: Final = (
    "door",
    "frames",
    "login",
    "ratio",
    "of processor",
    "loop's time, %",
    "records/s beside the flood, the sink",
    "taken of the flood, MB",
    "connections",
    "slowest /healthz, ms",
)


def table(results: list[Result]) -> Iterator[str]:
    """Yield the lines of the table. What was taken, and by how many connections, is of a round."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for one in results:
        cell, turns = one.cell, len(one.beside)
        rates = f"{sum(one.beside) / turns:,.0f}, {sum(one.baseline) / turns:,.0f}"
        which = f"{cell.door.value} | `{cell.kind}` | {'after' if cell.is_proven else 'before'}"
        taken = f"{one.bytes_taken / turns / 1e6:.2f} | {one.connections / turns:.0f}"
        ratios = f"{one.ratio:.2f} | {one.processor_ratio:.2f} | {one.share:.1%}"[:-1]
        yield f"| {which} | {ratios} | {rates} | {taken} | {one.slowest_ms:.0f} |"


async def main(chosen: argparse.Namespace) -> int:
    """Try the chosen cells; return the exit status."""
    with ExitStack() as stack:
        within = MEMORY if MEMORY.is_dir() else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=within)))
        node = SecuredNode(folder)
        stack.enter_context(node.running())
        flooder = stack.enter_context(Worker("flood"))
        sink = stack.enter_context(Worker("sink"))
        trial = Trial(node, flooder, sink)
        client = await trial.prepare()
        results = []
        try:
            for cell in cells():
                if chosen.only.lower() in cell.name.lower():
                    one = await trial.tried(cell, rounds=chosen.rounds, seconds=chosen.seconds)
                    told = (
                        f"{one.ratio:5.2f} {one.processor_ratio:5.2f} {one.share:5.1%} {cell.name}"
                    )
                    print(told, file=sys.stderr, flush=True)
                    results.append(one)
        finally:
            trial.stop()
            await client.close()
    lines = "\n".join(table(results))
    slow = [one.cell.name for one in results if one.ratio < RATIO_LEAST]
    print(f"{lines}\n\n{len(results)} cells, {len(slow)} below {RATIO_LEAST}", *slow, sep="; ")
    if chosen.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(
            re.sub(r"(?s)(<!-- table -->\n).*(<!-- end -->)", rf"\1{lines}\n\2", page),
            encoding="utf-8",
        )
    return 1 if slow else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cells with this in their name")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=6, help="of each cell")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(parser.parse_args())))
