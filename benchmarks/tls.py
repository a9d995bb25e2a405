"""What TLS costs: the processor time of a record with and without it, everywhere, in turns.

    python -m benchmarks.tls [--rounds 7] [--frames]

With `--frames` it is the frames of one connection instead, and no cluster.

Three nodes and the client share one process, so its processor time is all there is: both sides of
every connection, client to leader and leader to followers. Clocks on the wall say little on a
machine that does other things as well; processor time says the same on a busy one.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import uvloop

from angarium.client import Client, ClientSettings
from angarium.security.tls import CertificateFiles, Door, NodeTls, TlsOptions, client_tls
from angarium.security.tls.issuing import Authority, Names
from angarium.testing.broker import MEMORY_FOLDER, InProcessBroker
from angarium.wire import Handlers, Hello, Role, Server, dial

WORKERS: Final = 8
BATCH: Final = 500
BATCHES: Final = 100
"""That each worker publishes, while the clock runs."""
SINGLES: Final = 400
"""Published one at a time."""
VALUE: Final = bytes(100)

OPERATION: Final = 7
FRAMES: Final = (
    (100, 1, 10_000),
    (100, 50, 50_000),
    (4_000, 20, 15_000),
    (50_000, 5, 3_000),
    (300_000, 2, 600),
)
"""Bytes of a frame, how many leave in a turn of the loop, and how many there are."""


def certificates(folder: Path) -> tuple[NodeTls, TlsOptions]:
    """Make what nodes show and clients believe."""
    authority = Authority.make("a benchmark", days=2)
    names = Names(common_name="node", uri="angarium://bench/node/any", hosts=("127.0.0.1",))
    certificate, key = authority.issue(names, days=1)
    paths = [folder / name for name in ("node.crt", "node.key", "ca.crt")]
    for path, content in zip(paths, (certificate, key, authority.pem), strict=True):
        path.write_bytes(content)
    files = CertificateFiles(certificate=paths[0], key=paths[1], authorities=paths[2])
    return NodeTls(files), TlsOptions(ca=str(paths[2]))


async def measured(*, with_tls: bool) -> tuple[float, float]:
    """Return the microseconds of a record: in batches, and alone."""
    where = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name)
        tls, options = certificates(folder) if with_tls else (None, TlsOptions())
        broker = InProcessBroker(folder, nodes=3, tls=tls)
        await broker.start()
        try:
            settings = ClientSettings(tls=options, publish_timeout_s=120.0)
            async with Client(*broker.addresses, settings=settings) as client:
                return await _batched(client), await _alone(client)
        finally:
            await broker.stop()


async def _batched(client: Client) -> float:
    await client.create_topic("batched")
    values = [VALUE] * BATCH

    async def work(times: int) -> None:
        for _ in range(times):
            await client.publish_batch("batched", values)

    async def crew(times: int) -> None:
        await asyncio.gather(*(work(times) for _ in range(WORKERS)))

    await crew(5)
    before = time.process_time()
    await crew(BATCHES)
    return (time.process_time() - before) / (WORKERS * BATCHES * BATCH) * 1e6


async def _alone(client: Client) -> float:
    await client.create_topic("alone")
    for _ in range(20):
        await client.publish("alone", VALUE)
    before = time.process_time()
    for _ in range(SINGLES):
        await client.publish("alone", VALUE)
    return (time.process_time() - before) / SINGLES * 1e6


async def frame_us(size: int, in_a_turn: int, count: int, *, with_tls: bool) -> float:
    """Return the microseconds of a frame of `size` bytes, sent and received."""
    with tempfile.TemporaryDirectory() as name:
        tls, options = certificates(Path(name)) if with_tls else (None, TlsOptions())
        arrived, done = 0, asyncio.Event()

        def take(*_: object) -> None:
            nonlocal arrived
            arrived += 1
            if arrived == count:
                done.set()

        server = await Server.listen(
            host="127.0.0.1",
            port=0,
            greeting=lambda: Hello(role=Role.PEER, cluster="c", node=1),
            welcome=lambda _: Handlers(messages={OPERATION: take}),
            tls=None if tls is None else tls.listener(Door.WIRE),
        )
        connection = await dial(
            host="127.0.0.1",
            port=server.port,
            hello=Hello(role=Role.CLIENT),
            tls=client_tls(options),
        )
        payload, left = [os.urandom(size)], count
        before = time.process_time()
        while left:
            for _ in range(min(in_a_turn, left)):
                left -= connection.send(OPERATION, b"", payload)
            await connection.room()
            await asyncio.sleep(0)
        await done.wait()
        took = time.process_time() - before
        await connection.close()
        await server.drain()
        return took / count * 1e6


def measure_frames(rounds: int) -> None:
    """Print what a frame costs with and without TLS, by size; the least of some rounds."""
    for size, in_a_turn, count in FRAMES:
        least = {False: math.inf, True: math.inf}
        for _ in range(rounds):
            for with_tls in (False, True):
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    took = runner.run(frame_us(size, in_a_turn, count, with_tls=with_tls))
                least[with_tls] = min(least[with_tls], took)
        print(
            f"{size} bytes, {in_a_turn} in a turn: {least[False]:.1f} µs without,"
            f" {least[True]:.1f} µs with TLS, {least[True] / least[False]:.2f} x"
        )


def main() -> None:
    """Measure in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", action="store_true")
    given = parser.parse_args()
    rounds = given.rounds
    if given.frames:
        measure_frames(rounds)
        return
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number in range(rounds):
        for with_tls in (False, True) if number % 2 else (True, False):
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                found[with_tls].append(runner.run(measured(with_tls=with_tls)))
    for at, name in enumerate(("in batches", "alone")):
        plain, encrypted = (
            statistics.median(one[at] for one in found[with_tls]) for with_tls in (False, True)
        )
        ratios = [on[at] / off[at] for off, on in zip(found[False], found[True], strict=True)]
        print(
            f"{name}: {plain:.2f} µs without, {encrypted:.2f} µs with TLS,"
            f" {statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
