"""Redis Streams over redis-py (asyncio, with hiredis): a primary and two replicas.

Redis replicates asynchronously and has no quorum. The nearest thing to one is `WAIT 1` behind every
XADD, on the same connection: a replica then has the entry as well, *in memory*. What is fsynced
before that is the primary's append-only file, always or once a second. A primary that is lost takes
with it what no replica had; nothing elects another one here.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from benchmarks.peers.port import PublishFailed
from benchmarks.peers.servers import Servers, program, version_of
from redis.asyncio import Redis
from redis.exceptions import RedisError

from angarium.bench.cluster import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from angarium.bench.resources import Watched

INSTALL: Final = "sudo apt-get install --no-install-recommends redis-server"
REPLICAS: Final = 2
WAIT_REPLICAS: Final = 1
"""With the primary that is a majority."""

WAIT_MS_MAX: Final = 10_000
CONNECTIONS_MAX: Final = 100
"""Of one client; it takes another connection for each command that waits."""

FETCH: Final = 1_000
BLOCK_MS: Final = 5_000


class RedisStreams:
    """A primary, its replicas, and two promises."""

    def __init__(self, folder: Path) -> None:
        self.settings = [RedisSetting(self, "always"), RedisSetting(self, "everysec")]
        self._servers = Servers(folder)
        self._ports: list[int] = []
        self._version = ""

    @property
    def watched(self) -> list[Watched]:
        """The servers' processes."""
        return self._servers.watched

    @property
    def versions(self) -> str:
        """Server and client."""
        return f"{self._version}, redis-py {version('redis')}, hiredis {version('hiredis')}"

    async def start(self) -> None:
        """Start them, and wait until both replicas follow."""
        server = program("redis-server", INSTALL)
        self._version = "Redis " + version_of(server, "--version").split("v=")[1].split()[0]
        self._ports = free_ports(1 + REPLICAS)
        for number, port in enumerate(self._ports):
            folder = self._servers.folder / f"redis-{number}"
            folder.mkdir(parents=True)
            command = [server, "--port", str(port), "--bind", HOST, "--dir", str(folder)]
            command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
            command += ["--repl-diskless-sync-delay", "0"]
            if number:
                command += ["--replicaof", HOST, str(self._ports[0])]
            self._servers.launch(f"redis-{number}", command)
        await self._servers.until(self._is_ready, RedisError)

    async def _is_ready(self) -> bool:
        primary = self.connected()
        try:
            told = await primary.info("replication")
        finally:
            await primary.aclose()
        replicas = [told.get(f"slave{number}", {}) for number in range(REPLICAS)]
        return all(one.get("state") == "online" for one in replicas)

    async def set_fsync(self, policy: str) -> None:
        """Let every server follow the policy from now on."""
        for number in range(len(self._ports)):
            server = self.connected(number)
            await server.config_set("appendfsync", policy)
            await server.aclose()

    def connected(self, number: int = 0) -> Redis:
        """Return a client of one server; the first is the primary."""
        return Redis(host=HOST, port=self._ports[number], max_connections=CONNECTIONS_MAX)

    def stop(self) -> None:
        """Stop the servers."""
        self._servers.stop()


class RedisSetting:
    """How often the append-only files are fsynced."""

    def __init__(self, servers: RedisStreams, policy: str) -> None:
        self.key = f"redis_{policy}"
        fsynced = {
            "always": "the primary has fsynced it, a replica has it in memory",
            "everysec": "the primary and a replica have it in memory, fsynced every second",
        }
        self.promise = f"{fsynced[policy]} (`appendfsync {policy}`, `WAIT 1`; no quorum)"
        self._servers = servers
        self._policy = policy

    async def make_topic(self, topic: str) -> None:
        """Set the policy, for both settings share the servers; streams come by themselves."""
        del topic
        await self._servers.set_fsync(self._policy)

    async def drop_topic(self, topic: str) -> None:
        """Delete the stream."""
        primary = self._servers.connected()
        await primary.unlink(topic)
        await primary.aclose()

    async def client(self, *, is_alone: bool) -> RedisClient:
        """Connect."""
        del is_alone
        return RedisClient(self._servers.connected())

    async def close(self) -> None:
        """Nothing is open."""


class RedisClient:
    """A client with its pool: whoever waits has a connection of the pool for himself."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def publish(self, topic: str, value: bytes) -> None:
        """Append, and wait for a replica: one round trip."""
        await self.publish_all(topic, [value])

    async def publish_all(self, topic: str, values: Sequence[bytes]) -> None:
        """Append all in one pipeline, and wait for a replica once."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            for value in values:
                pipeline.xadd(topic, {"v": value})
            pipeline.execute_command("WAIT", WAIT_REPLICAS, WAIT_MS_MAX)
            *ids, replicas = await pipeline.execute()
        if len(ids) != len(values) or replicas < WAIT_REPLICAS:
            raise PublishFailed(f"{len(ids)} of {len(values)} entries on {replicas} replicas")

    async def reader(self, topics: Sequence[str]) -> RedisReader:
        """Read with XREAD."""
        return RedisReader(self._redis, topics)

    async def close(self) -> None:
        """Hang up."""
        await self._redis.aclose()


class RedisReader:
    """Reads streams side by side."""

    def __init__(self, redis: Redis, topics: Sequence[str]) -> None:
        self._redis = redis
        self._after: dict[bytes, bytes] = {topic.encode(): b"0" for topic in topics}

    async def some(self) -> list[bytes]:
        """Wait for anything."""
        values: list[bytes] = []
        while not values:
            found = await self._redis.xread(dict(self._after), count=FETCH, block=BLOCK_MS)
            for topic, entries in found:
                self._after[topic] = entries[-1][0]
                values += [fields[b"v"] for _, fields in entries]
        return values

    async def close(self) -> None:
        """End with the client."""
