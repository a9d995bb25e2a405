"""Everything that says it is a broker: what the contract's suite is run against.

One node and one cluster serve all tests of a session; each test has topics and groups of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from tests.component.client.fake_broker import fake_cluster
from tests.contract.wire_transactions import WireTransactions
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.api.access import ANONYMOUS
from angarium.app.gateway import CountingBroker
from angarium.client import Client
from angarium.client.contract import RemoteBroker
from angarium.client.loop_thread import LoopThread
from angarium.doors.wire.door import WireDoor
from angarium.ids import CATALOG_GROUP
from angarium.node.config import NodeConfig
from angarium.node.node import Node
from angarium.service.access import Access
from angarium.service.metering import MeteredService
from angarium.service.patience import patient
from angarium.telemetry.meters import Meters
from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from angarium.api import Broker, TopicInfo
    from angarium.api.transactions import TransactionBroker
    from angarium.service.broker import Service


T = TypeVar("T")
P = ParamSpec("P")

SOON_S = 30.0
"""How long anything may take that happens soon, on a busy machine."""

TEST_S = 120.0

TICK_MS = 200
"""Nodes of one process share a loop. On a busy machine it is late, and with the tick of a real node
that would be an election in the middle of a test."""

BROKERS = (
    "service",
    "service that follows",
    "service without a replica",
    "doors",
    "remote",
    "gateway",
    "memory",
    "fake cluster",
)
"""A node's own service; that of a follower, and of a node that has no replica of anything; what
the gRPC and HTTP doors of a node hold; the client's, at a node; a gateway's, at a cluster; and the
two fakes: of the doors' tests in memory, and of the client's tests behind real sockets."""

FAKES = ("memory", "fake cluster")

GROUPED = tuple(one for one in BROKERS if one not in FAKES)
"""Those that have groups and more than one epoch: the fakes have neither, and say so."""


@dataclass
class Subject:
    """A broker under test, and the loop that it lives on."""

    name: str
    thread: LoopThread
    broker: Broker
    """The one to ask. Of a follower: whichever node does not lead the topic made last."""
    followers: tuple[Service, ...] = ()
    client: Client | None = None
    """Behind a remote one."""
    _numbers: count[int] = field(default_factory=count)

    def call(self, work: Coroutine[None, None, T]) -> T:
        """Run a test there, and not for ever."""

        async def in_time() -> T:
            async with asyncio.timeout(TEST_S):
                return await work

        return self.thread.call(in_time())

    def fresh(self, what: str = "topic") -> str:
        """Return a name that nothing has yet."""
        return f"{what}-{self.name.replace(' ', '-')}-{next(self._numbers)}"

    @property
    def transactions(self) -> TransactionBroker:
        """The same broker's transactions."""
        if self.client is not None:
            return WireTransactions(self.client)
        # A service has them apart, what doors hold has everything in one.
        return cast("TransactionBroker", getattr(self.broker, "transactions", self.broker))

    async def topic(self, *, partitions: int = 1, config: TopicConfig | None = None) -> str:
        """Make a topic, which can be used at once."""
        name = self.fresh()
        info = await self.broker.create_topic(
            name, partitions=partitions, config=config or TopicConfig()
        )
        if self.followers:
            self.broker = await self._follower(info)
        return name

    async def _follower(self, info: TopicInfo) -> Service:
        async with asyncio.timeout(SOON_S):
            while True:
                for one in self.followers:
                    seen = await one.describe_topic(info.name)
                    leader = seen.partitions[0].leader
                    if leader is not None and leader != (await one.cluster_status()).node:
                        return one
                await asyncio.sleep(0.01)


def kept_by_all(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Let a test be run on the loop of its `subject`."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        subject = kwargs["subject"]
        assert isinstance(subject, Subject)
        subject.call(test(*args, **kwargs))

    return run


class Subjects:
    """Brokers by name, each started when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = LoopThread("contract")
        self._open = AsyncExitStack()
        self._found: dict[str, Subject] = {}
        self._single: InProcessBroker | None = None
        self._cluster: InProcessBroker | None = None

    def named(self, name: str) -> Subject:
        """Return a broker."""
        if name not in self._found:
            self._found[name] = self._thread.call(self._started(name))
        return self._found[name]

    def close(self) -> None:
        """Stop everything."""
        try:
            self._thread.call(self._open.aclose())
        finally:
            self._thread.stop()

    async def _started(self, name: str) -> Subject:
        broker: Any
        followers: tuple[Service, ...] = ()
        client: Client | None = None
        match name:
            case "service":
                broker = (await self._one_node()).services[0]
            case "service that follows":
                services = (await self._three_nodes()).services
                broker, followers = services[0], (_there(services[0]), _there(services[1]))
            case "service without a replica":
                broker = (await self._three_nodes()).services[2]
            case "doors":
                service = await self._open.enter_async_context(metered(self._folder))
                broker = patient(Access(service).broker_for(ANONYMOUS))
            case "remote":
                client = await self._client(*(await self._one_node()).addresses)
                broker = RemoteBroker(client)
            case "gateway":
                client = await self._client(*(await self._three_nodes()).addresses)
                broker = CountingBroker(client, Meters())
            case "memory":
                broker = MemoryBroker()
                broker.auto_create = True
            case "fake cluster":
                cluster = await self._open.enter_async_context(fake_cluster(2))
                cluster.auto_create = True
                broker = RemoteBroker(await self._client(*cluster.addresses))
        return Subject(name, self._thread, cast("Broker", broker), followers, client)

    async def _client(self, *addresses: str) -> Client:
        return await self._open.enter_async_context(Client(*addresses))

    async def _one_node(self) -> InProcessBroker:
        if self._single is None:
            self._single = await self._open.enter_async_context(
                in_process_broker(self._folder / "single")
            )
        return self._single

    async def _three_nodes(self) -> InProcessBroker:
        """Return a cluster whose last node is drained: it has a replica of nothing, ever."""
        if self._cluster is None:
            self._cluster = await self._open.enter_async_context(
                in_process_broker(self._folder / "cluster", nodes=3, tick_ms=TICK_MS)
            )
            last = self._cluster.nodes[-1]
            assert last is not None
            await _there(self._cluster.services[0]).drain_node(last.id, draining=True)
        return self._cluster


@asynccontextmanager
async def metered(folder: Path) -> AsyncIterator[MeteredService]:
    """A node as a process runs it: with a service that counts."""
    data = folder / "metered"
    node = Node(NodeConfig(data_directory=data, wire_port=0, form=True, tick_ms=50))
    service = MeteredService(node)
    node.welcome = WireDoor(node, service, Access(service)).welcome
    try:
        await node.start()
        async with asyncio.timeout(SOON_S):
            while node.leader_of(CATALOG_GROUP) is None or not node.is_member:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        yield service
    finally:
        await node.stop()


def _there(service: Service | None) -> Service:
    assert service is not None
    return service
