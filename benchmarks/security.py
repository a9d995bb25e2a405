"""What security costs: clusters without it, with users and grants, and with TLS as well, in turns.

    python -m benchmarks.security [--rounds 7]

Three clusters of three real nodes each run side by side on the disk, and one of them is loaded at a
time: a client in this process, who logs in by SCRAM where it has to, publishes CONSISTENT records
in batches, and then one at a time. In every round each cluster has its turn, in changing order; a
ratio compares turns of the same round, and the median of the rounds is told. Processor time is that
of the three nodes and the client together: it tells smaller differences than a clock on the wall.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from angarium.bench.cluster import free_ports
from angarium.bench.resources import Watched, own_usage, usage
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError
from angarium.security.tls import TlsOptions
from angarium.security.tls.issuing import Authority, Names

NODES: Final = 3
START_S_MAX: Final = 120.0
WORKERS: Final = 8
BATCH: Final = 2_000
BATCHED_S: Final = 3.0
ALONE_S: Final = 3.0
WARM_S: Final = 0.3
VALUE: Final = bytes(100)
PASSWORD: Final = "the-word-of-a-benchmark"

FORMATS: Final = {"batched": ",.0f", "batched_us": ".2f", "alone_ms": ".2f", "alone_us": ".0f"}
"""The figures of a turn, in the order in which they are told."""

VARIANTS: Final = ("nothing", "users and grants", "users, grants, TLS")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of a cluster came to."""

    batched: float
    """Records per second that were acknowledged."""
    batched_us: float
    """Processor time per record."""
    alone_ms: float
    """The median time of one record at a time."""
    alone_us: float
    """Processor time per record."""


class Cluster:
    """Three nodes, secured as the variant says."""

    def __init__(self, folder: Path, variant: str, authority: Authority) -> None:
        self._folder = folder
        self._is_secured = variant != VARIANTS[0]
        self._has_tls = variant == VARIANTS[2]
        self._authority = authority
        self._ports = free_ports(NODES)
        self._processes: list[subprocess.Popen[bytes]] = []

    async def start(self) -> None:
        """Start the nodes; return when all of them are members."""
        self._folder.mkdir()
        (self._folder / "ca.crt").write_bytes(self._authority.pem)
        for number in range(NODES):
            self._start(number, join_token=await self._invitation() if number else "")
            await self._until_members(number + 1)
        async with self.client() as client:
            await client.create_topic("batched")
            await client.create_topic("alone")

    def stop(self) -> None:
        """End them."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=60)

    def processor_s(self) -> float:
        """Return the processor time that the nodes and this process have used by now."""
        seen = [usage(Watched(process.pid)) for process in self._processes]
        return own_usage()[0] + sum(one.cpu_s for one in seen if one is not None)

    def client(self) -> Client:
        """Return a client that can come in."""
        tls = TlsOptions(ca=str(self._folder / "ca.crt") if self._has_tls else "")
        settings = ClientSettings(tls=tls, publish_timeout_s=120.0)
        servers = [f"127.0.0.1:{port}" for port in self._ports]
        if self._is_secured:
            return Client(*servers, user="admin", password=PASSWORD, settings=settings)
        return Client(*servers, settings=settings)

    async def _invitation(self) -> str:
        """Return what lets one more node in; nothing where nobody asks for it."""
        if not self._is_secured:
            return ""
        async with self.client() as admin:
            return (await admin.create_join_token()).secret

    def _start(self, number: int, *, join_token: str) -> None:
        folder = self._folder / f"node-{number}"
        folder.mkdir()
        entry = f'join = ["127.0.0.1:{self._ports[0]}"]' if number else "form = true"
        lines = ["[node]", entry, "[listen]", f"wire_port = {self._ports[number]}"]
        lines += ['grpc_port = "off"', 'http_port = "off"', "[security]"]
        if self._is_secured:
            lines += ['authentication = "required"']
            lines += [] if self._has_tls else ["trust_peers = true"]
        if self._has_tls:
            uri = f"angarium://bench/node/{number}"
            names = Names(common_name="node", uri=uri, hosts=("127.0.0.1",))
            certificate, key = self._authority.issue(names, days=1)
            (folder / "node.crt").write_bytes(certificate)
            (folder / "node.key").write_bytes(key)
            (folder / "node.key").chmod(0o600)
            lines += ["[tls]", 'certificate = "node.crt"', 'private_key = "node.key"']
            lines += [f'authorities = "{self._folder / "ca.crt"}"']
        (folder / "node.toml").write_text("\n".join(lines), encoding="utf-8")
        words = [sys.executable, "-m", "angarium", "serve", "--config", "node.toml"]
        words += ["--data", "data", "--log-level", "WARNING", "--parent", str(os.getpid())]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                words,
                cwd=folder,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "ANGARIUM_ADMIN_PASSWORD": PASSWORD,
                    "ANGARIUM_JOIN_TOKEN": join_token,
                },
            )
        self._processes.append(process)

    async def _until_members(self, count: int) -> None:
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(AngariumError):
                async with asyncio.timeout(10), self.client() as client:
                    status = await client.cluster_status()
                    if sum(one.alive for one in status.nodes) == count:
                        return
            await asyncio.sleep(0.2)
        raise SystemExit(f"a cluster did not come up; its logs are in {self._folder}")


async def turn(cluster: Cluster) -> Turn:
    """Load one cluster."""
    async with cluster.client() as client:
        await _batched(client, WARM_S)
        used, began = cluster.processor_s(), time.perf_counter()
        stored = await _batched(client, BATCHED_S)
        took_s = time.perf_counter() - began
        batched_us = (cluster.processor_s() - used) / stored * 1e6
        await _alone(client, WARM_S)
        used = cluster.processor_s()
        times = await _alone(client, ALONE_S)
        alone_us = (cluster.processor_s() - used) / len(times) * 1e6
    return Turn(stored / took_s, batched_us, statistics.median(times) * 1e3, alone_us)


async def _batched(client: Client, seconds: float) -> int:
    """Publish batches for a while; return how many records were acknowledged."""
    values = [VALUE] * BATCH
    stored = 0
    end = time.perf_counter() + seconds

    async def work() -> None:
        nonlocal stored
        while time.perf_counter() < end:
            await client.publish_batch("batched", values)
            stored += len(values)

    await asyncio.gather(*(work() for _ in range(WORKERS)))
    return stored


async def _alone(client: Client, seconds: float) -> list[float]:
    """Publish records one by one for a while; return how long each took."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        await client.publish("alone", VALUE)
        took.append(time.perf_counter() - began)
    return took


async def measure(rounds: int, folder: Path) -> dict[str, list[Turn]]:
    """Give every cluster its turn in every round."""
    authority = Authority.make("a benchmark", days=2)
    clusters = {
        name: Cluster(folder / str(number), name, authority) for number, name in enumerate(VARIANTS)
    }
    found: dict[str, list[Turn]] = {name: [] for name in VARIANTS}
    try:
        for cluster in clusters.values():
            await cluster.start()
        for number in range(rounds + 1):
            for name in random.sample(VARIANTS, len(VARIANTS)):
                taken = await turn(clusters[name])
                if number:  # the first round warms everything up
                    found[name].append(taken)
    finally:
        for cluster in clusters.values():
            cluster.stop()
    return found


def main() -> None:
    """Measure in turns, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory(prefix="angarium-security-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        found = runner.run(measure(rounds, Path(folder)))
    print(
        "| | batched, records/s | ratio | µs of processor | ratio"
        " | one at a time, p50 ms | ratio | µs of processor | ratio |\n|---|" + "---|" * 8
    )
    for name, turns in found.items():
        columns = [f"{_median(turns, one)} | {_ratio(turns, found, one)}" for one in FORMATS]
        print(f"| {name} | {' | '.join(columns)} |", flush=True)


def _median(turns: list[Turn], figure: str) -> str:
    return format(statistics.median(getattr(one, figure) for one in turns), FORMATS[figure])


def _ratio(turns: list[Turn], found: dict[str, list[Turn]], figure: str) -> str:
    """Divide by what the cluster without anything came to in the same round."""
    plain = found[VARIANTS[0]]
    pairs = zip(turns, plain, strict=True)
    return _spread([getattr(one, figure) / getattr(other, figure) for one, other in pairs])


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
