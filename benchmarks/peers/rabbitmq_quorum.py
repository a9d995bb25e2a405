"""RabbitMQ's quorum queues over aio-pika: three nodes, publisher confirms.

A quorum queue is replicated by Raft, and a publish is confirmed when a majority has it in its
fsynced write-ahead log: of all peers this promise is the nearest to CONSISTENT. To read a queue is
to take from it: a reader here acknowledges what it got, many at a time.

The nodes find each other through a port mapper (epmd) of their own, on loopback as they are.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aio_pika
from aio_pika.exceptions import AMQPError
from benchmarks.peers.servers import Servers, program

from angarium.bench.cluster import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage

    from angarium.bench.resources import Watched

INSTALL: Final = "sudo apt-get install --no-install-recommends rabbitmq-server"
SCRIPTS: Final = Path("/usr/lib/rabbitmq/bin")
"""Debian's own rabbitmq-server in the path changes to a user of its own first."""

PREFETCH: Final = 2_000
"""Messages on their way to a reader that it has not acknowledged."""


class RabbitQuorumQueues:
    """Three nodes; there is one promise."""

    key = "rabbitmq"
    promise = "a majority has fsynced it (publisher confirms)"

    def __init__(self, folder: Path) -> None:
        self.settings = [self]
        self._servers = Servers(folder)
        self._ports: list[int] = []
        self._version = ""
        self._admin: AbstractConnection | None = None
        self._made: AbstractChannel | None = None

    @property
    def watched(self) -> list[Watched]:
        """The nodes' processes, without the port mapper."""
        return self._servers.watched[1:]

    @property
    def versions(self) -> str:
        """Server and client."""
        return f"RabbitMQ {self._version}, aio-pika {version('aio-pika')}"

    async def start(self) -> None:
        """Start the first node, let the others join it, and wait for a queue of three replicas."""
        # aiormq logs every refused connection of a node that is still starting.
        logging.getLogger("aiormq").setLevel(logging.CRITICAL)
        server, epmd = program("rabbitmq-server", INSTALL, SCRIPTS), program("epmd", INSTALL)
        mapper, *ports = free_ports(7)
        self._ports = ports[:3]
        folder = self._servers.folder
        folder.mkdir(parents=True)
        # The first node is the one that others join.
        (folder / "rabbitmq.conf").write_text(
            "cluster_formation.peer_discovery_backend = classic_config\n"
            "cluster_formation.classic_config.nodes.1 = peers0@localhost\n"
            # The disk and the memory of a benchmark's machine are not RabbitMQ's alone.
            "disk_free_limit.absolute = 50MB\n",
            encoding="utf-8",
        )
        (folder / "plugins").write_text("[].\n", encoding="utf-8")
        self._servers.launch("epmd", [epmd, "-port", str(mapper), "-address", HOST])
        cookie = secrets.token_hex(16)
        for number in range(3):
            node = folder / f"rabbit-{number}"
            node.mkdir()
            environment = {
                "HOME": str(folder),
                "ERL_EPMD_PORT": str(mapper),
                "ERL_EPMD_ADDRESS": HOST,
                "RABBITMQ_NODENAME": f"peers{number}@localhost",
                "RABBITMQ_NODE_IP_ADDRESS": HOST,
                "RABBITMQ_NODE_PORT": str(ports[number]),
                "RABBITMQ_DIST_PORT": str(ports[3 + number]),
                "RABBITMQ_MNESIA_BASE": str(node),
                "RABBITMQ_LOG_BASE": str(node),
                "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                    f"-setcookie {cookie} -kernel inet_dist_use_interface {{127,0,0,1}}"
                ),
            }
            self._servers.launch(f"rabbit-{number}", [server], environment)
            if number == 0:
                await self._servers.until(self._first_answers, AMQPError)
        await self._servers.until(self._is_ready, AMQPError)
        self._admin = await aio_pika.connect(host=HOST, port=self._ports[0])
        self._made = await self._admin.channel()

    async def _first_answers(self) -> bool:
        connection = await aio_pika.connect(host=HOST, port=self._ports[0], timeout=2)
        product = connection.transport.connection.server_properties
        self._version = str(product["version"])
        await connection.close()
        return True

    async def _is_ready(self) -> bool:
        for port in self._ports[1:]:
            await (await aio_pika.connect(host=HOST, port=port, timeout=2)).close()
        # Every node listens only after it has joined: a queue made now has all three.
        return True

    def stop(self) -> None:
        """Stop the nodes, and the port mapper last."""
        self._servers.stop()

    async def make_topic(self, topic: str) -> None:
        """Declare a quorum queue."""
        assert self._made is not None
        await self._made.declare_queue(
            topic,
            durable=True,
            arguments={"x-queue-type": "quorum", "x-quorum-initial-group-size": 3},
        )

    async def drop_topic(self, topic: str) -> None:
        """Delete it."""
        assert self._made is not None
        await self._made.queue_delete(topic)

    async def client(self, *, is_alone: bool) -> RabbitClient:
        """Connect to the node that the queues' leaders are on."""
        del is_alone
        connection = await aio_pika.connect(host=HOST, port=self._ports[0])
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        return RabbitClient(connection, channel)

    async def close(self) -> None:
        """Hang up what makes queues."""
        if self._admin is not None:
            await self._admin.close()


class RabbitClient:
    """A connection with a channel."""

    def __init__(self, connection: AbstractConnection, channel: AbstractChannel) -> None:
        self._connection = connection
        self._channel = channel

    async def publish(self, topic: str, value: bytes) -> None:
        """Publish and wait for the confirm."""
        message = aio_pika.Message(value, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._channel.default_exchange.publish(message, topic)

    async def publish_all(self, topic: str, values: Sequence[bytes]) -> None:
        """Publish all, each waiting for its confirm in a task: the library knows no other way."""
        await asyncio.gather(*(self.publish(topic, value) for value in values))

    async def reader(self, topics: Sequence[str]) -> RabbitReader:
        """Consume, on a channel of its own."""
        channel = await self._connection.channel(publisher_confirms=False)
        await channel.set_qos(prefetch_count=PREFETCH)
        reader = RabbitReader(channel)
        for topic in topics:
            queue = await channel.get_queue(topic, ensure=False)
            await queue.consume(reader.take)
        return reader

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()


class RabbitReader:
    """A consumer of queues."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._came: list[AbstractIncomingMessage] = []
        self._news = asyncio.Event()

    async def take(self, message: AbstractIncomingMessage) -> None:
        """Keep what came until it is asked for."""
        self._came.append(message)
        self._news.set()

    async def some(self) -> list[bytes]:
        """Wait for anything; acknowledge it at once."""
        await self._news.wait()
        self._news.clear()
        came, self._came = self._came, []
        await came[-1].ack(multiple=True)
        return [message.body for message in came]

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()
