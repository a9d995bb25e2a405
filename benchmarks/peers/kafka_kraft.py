"""Kafka over confluent-kafka: three KRaft nodes, each broker and controller.

`acks=all` with `min.insync.replicas=2`, which is Kafka's majority. By default an acknowledged
record is in the page caches of the in-sync replicas; with `flush.messages=1` on the topic every
replica fsyncs each batch before it counts.

The client is Confluent's over librdkafka rather than aiokafka, which speaks older versions of the
protocol from Python: librdkafka's own threads send and receive without the interpreter's lock. Its
`AIOProducer` holds records back to hand them over in batches, so that the plain producer with a
thread that polls is what a record alone is measured with. How long it waits for company is chosen
for each load, by trial: nothing for a client with one record on its way, half a millisecond for one
that many share (with 0 ms, 60 workers had less than a tenth of the rate, with librdkafka's default
of 5 ms a third to a half).
"""

from __future__ import annotations

import asyncio
import threading
from asyncio.subprocess import PIPE, STDOUT
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from benchmarks.peers.kafka_jars import INSTALL, KAFKA, kafka_jars
from benchmarks.peers.port import PublishFailed
from benchmarks.peers.servers import Servers, program
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from angarium.bench.cluster import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from angarium.bench.resources import Watched

CLUSTER_ID: Final = "YW5nYXJpdW0tcGVlcnMhIQ"
"""16 bytes in base64, as Kafka wants them."""

JAVA_OPTIONS: Final = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""Those of Kafka's own start script."""

SHARED_LINGER_MS: Final = 0.5
"""How long a record waits for company in a producer that many share."""

POLL_SECONDS: Final = 0.1
FETCH: Final = 2_000
ADMIN_SECONDS_MAX: Final = 30.0


class KafkaKraft:
    """Three nodes and two promises."""

    def __init__(self, folder: Path) -> None:
        self.settings = [
            KafkaSetting(self, "kafka", {}, "the in-sync replicas have it in page cache"),
            KafkaSetting(
                self,
                "kafka_flushed",
                {"flush.messages": "1"},
                "the in-sync replicas have fsynced it",
            ),
        ]
        self._servers = Servers(folder)
        self._ports: list[int] = []
        self.admin: AdminClient | None = None

    @property
    def watched(self) -> list[Watched]:
        """The nodes' processes."""
        return self._servers.watched

    @property
    def versions(self) -> str:
        """Server and client."""
        return f"Kafka {KAFKA}, confluent-kafka {version('confluent-kafka')}"

    @property
    def bootstrap(self) -> dict[str, str]:
        """Where clients begin."""
        return {"bootstrap.servers": ",".join(f"{HOST}:{port}" for port in self._ports)}

    async def start(self) -> None:
        """Format three folders, start a node on each, and wait for three brokers."""
        java = program("java", INSTALL)
        jars = await asyncio.to_thread(kafka_jars)
        ports = free_ports(6)
        self._ports = ports[:3]
        voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(ports[3:], 1))
        configs = [
            self._configured(number, broker=ports[number - 1], controller=ports[number + 2])
            for number in (1, 2, 3)
        ]
        for config in configs:
            with config.open("a", encoding="utf-8") as file:
                file.write(f"controller.quorum.voters={voters}\n")
        run = [java, *JAVA_OPTIONS, "-cp", f"{jars}/*"]
        await asyncio.gather(*(_formatted(run, config) for config in configs))
        for config in configs:
            self._servers.launch(config.stem, [*run, "kafka.Kafka", str(config)])
        # librdkafka complains of brokers that are not there yet unless it is told not to.
        self.admin = AdminClient({**self.bootstrap, "log_level": 0})
        await self._servers.until(self._is_ready, KafkaException)

    def _configured(self, number: int, *, broker: int, controller: int) -> Path:
        folder = self._servers.folder
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / f"kafka-{number}.properties"
        config.write_text(
            f"""\
process.roles=broker,controller
node.id={number}
listeners=PLAINTEXT://{HOST}:{broker},CONTROLLER://{HOST}:{controller}
advertised.listeners=PLAINTEXT://{HOST}:{broker}
controller.listener.names=CONTROLLER
log.dirs={folder}/kafka-{number}
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
group.initial.rebalance.delay.ms=0
""",
            encoding="utf-8",
        )
        return config

    async def _is_ready(self) -> bool:
        assert self.admin is not None
        told = await asyncio.to_thread(self.admin.list_topics, timeout=2)
        return len(told.brokers) == 3

    def stop(self) -> None:
        """Stop the nodes."""
        self.admin = None
        self._servers.stop()


class KafkaSetting:
    """What the topics are configured with."""

    def __init__(self, cluster: KafkaKraft, key: str, config: dict[str, str], promise: str) -> None:
        self.key = key
        told = ", ".join(f"`{name}={value}`" for name, value in config.items())
        self.promise = f"{promise} (`acks=all`, `min.insync.replicas=2`{told and ', ' + told})"
        self._cluster = cluster
        self._config = {"min.insync.replicas": "2", **config}

    async def make_topic(self, topic: str) -> None:
        """Make a topic of one partition, and wait until its leader is known."""
        assert self._cluster.admin is not None
        new = NewTopic(topic, num_partitions=1, replication_factor=3, config=self._config)
        (made,) = self._cluster.admin.create_topics([new]).values()
        await asyncio.to_thread(made.result, ADMIN_SECONDS_MAX)

    async def drop_topic(self, topic: str) -> None:
        """Delete it."""
        assert self._cluster.admin is not None
        (gone,) = self._cluster.admin.delete_topics([topic]).values()
        await asyncio.to_thread(gone.result, ADMIN_SECONDS_MAX)

    async def client(self, *, is_alone: bool) -> KafkaClient:
        """Make a producer; it connects by itself."""
        linger_ms = 0.0 if is_alone else SHARED_LINGER_MS
        return KafkaClient(self._cluster.bootstrap, linger_ms=linger_ms)

    async def close(self) -> None:
        """Nothing is open that would complain."""


class KafkaClient:
    """A producer, and the thread in which it tells what was delivered."""

    def __init__(self, bootstrap: dict[str, str], *, linger_ms: float) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.get_running_loop()
        options = {"acks": "all", "linger.ms": linger_ms, "log_level": 0}
        self._producer = Producer({**bootstrap, **options})
        self._is_open = True
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while self._is_open:
            self._producer.poll(POLL_SECONDS)

    async def publish(self, topic: str, value: bytes) -> None:
        """Publish and wait for the delivery report."""
        await self.publish_all(topic, [value])

    async def publish_all(self, topic: str, values: Sequence[bytes]) -> None:
        """Hand all over, and wait for the last report."""
        delivery = Delivery(self._loop, len(values))
        for value in values:
            self._producer.produce(topic, value, on_delivery=delivery.report)
        await delivery.done

    async def reader(self, topics: Sequence[str]) -> KafkaReader:
        """Read with a consumer of its own."""
        return KafkaReader(self._bootstrap, topics)

    async def close(self) -> None:
        """Stop the thread; nothing is on its way any more."""
        self._is_open = False
        await asyncio.to_thread(self._thread.join)


class Delivery:
    """Waits for the reports of one call, which come in another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.done: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._left = count
        self._error: KafkaError | None = None

    def report(self, error: KafkaError | None, _: Any) -> None:
        """Take one report."""
        self._error = self._error or error
        self._left -= 1
        if not self._left:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if self.done.done():  # nobody waits any more
            return
        if self._error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(PublishFailed(str(self._error)))


class KafkaReader:
    """A consumer of whole topics, outside of any group's rebalancing."""

    def __init__(self, bootstrap: dict[str, str], topics: Sequence[str]) -> None:
        options = {"group.id": "reader", "enable.auto.commit": False, "log_level": 0}
        self._consumer = Consumer({**bootstrap, **options})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])

        self._is_open = True
        self._reading = threading.Lock()

    async def some(self) -> list[bytes]:
        """Wait for anything, in a thread."""
        return await asyncio.to_thread(self._some)

    def _some(self) -> list[bytes]:
        with self._reading:
            while self._is_open:
                # `consume` waits until so many are there, or so long: first take what is there.
                found = self._consumer.consume(FETCH, timeout=0) or self._consumer.consume(
                    1, timeout=POLL_SECONDS
                )
                if found:
                    return [message.value() for message in found if not _is_failed(message)]
        return []

    async def close(self) -> None:
        """Leave, after a reading that nobody waits for any more."""
        self._is_open = False
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._reading:
            self._consumer.close()


def _is_failed(message: Message) -> bool:
    if (error := message.error()) is not None:
        raise KafkaException(error)
    return False


async def _formatted(run: Sequence[str], config: Path) -> None:
    command = [*run, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    said, _ = await process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"Kafka's folders could not be formatted:\n{said.decode()[-800:]}")
