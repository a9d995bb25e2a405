"""Speaking with one node, and no other: what this node says, true or not.

The client would ask whoever answers first, which is what users want and tests do not.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import ClusterStatus, FetchResult, Producer, TopicConfig, TopicInfo
from angarium.api.access import IssuedJoinToken
from angarium.batch import encode, split
from angarium.client.login import Login
from angarium.errors import AngariumError, OutcomeUnknown
from angarium.wire import Hello, Role, Unreachable, dial
from angarium.wire.operations import (
    CreateTopicHeader,
    DrainNodeHeader,
    FetchAnswer,
    FetchHeader,
    LevelAnswer,
    OpenProducerHeader,
    Operation,
    PublishAnswer,
    PublishHeader,
    RaiseLevelHeader,
    RemoveNodeHeader,
    TopicHeader,
    TopicsAnswer,
    TransferLeaderHeader,
)
from angarium.wire.operations.access import CreateJoinTokenHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Ack
    from angarium.ids import Buffer, NodeId, Offset
    from angarium.modes import DeliveryMode
    from angarium.security.tls import Dialling
    from angarium.wire import Connection, Frame, Header

ANSWER_SECONDS_MAX: Final = 2.0
"""How long who only wants to look waits for an answer from memory: a node that is paused gives
none, and then another one is asked."""

WORK_SECONDS_MAX: Final = 30.0
"""How long an answer may take that waits for other nodes and disks, on a busy machine."""


AGAIN_AFTER_S: Final = 0.05
"""How long to wait before something is sent again that was not taken."""


class Contact:
    """A connection to one address, dialled anew when it is needed and broken."""

    def __init__(
        self, host: str, port: int, *, tls: Dialling | None = None, login: Login | None = None
    ) -> None:
        self._host, self._port = host, port
        self._tls = tls
        self._login = login or Login()
        self._connection: Connection | None = None
        self._dialling = asyncio.Lock()

    async def connection(self, *, timeout_s: float = ANSWER_SECONDS_MAX) -> Connection:
        """Return an open connection; raises `Unreachable`."""
        async with self._dialling:
            if self._connection is None or not self._connection.is_open:
                self._connection = await dial(
                    host=self._host,
                    port=self._port,
                    hello=Hello(role=Role.CLIENT),
                    timeout_s=timeout_s,
                    tls=self._tls,
                )
                try:
                    await self._login.prove(self._connection, timeout_s=WORK_SECONDS_MAX)
                except AngariumError:
                    self.cut()
                    raise
            return self._connection

    async def ask(
        self,
        operation: Operation,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        timeout_s: float = ANSWER_SECONDS_MAX,
    ) -> Frame:
        """Return the node's answer; raises what it answered instead, or that it did not."""
        connection = await self.connection(timeout_s=timeout_s)
        return await connection.request(operation, header, payload, timeout_s=timeout_s)

    def cut(self) -> None:
        """Hang up without a word, for instance on a node that is paused and could not hear it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.fail(Unreachable("nobody waits for this node any more"))

    async def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(AngariumError, TimeoutError):
                await connection.close(timeout_s=0.2)

    # --- the contract -----------------------------------------------------------------------

    async def status(self, *, timeout_s: float = WORK_SECONDS_MAX) -> ClusterStatus:
        """Return the cluster as the node sees it."""
        frame = await self.ask(Operation.CLUSTER_STATUS, timeout_s=timeout_s)
        return frame.read(ClusterStatus)

    async def join_token(self) -> str:
        """Return a token that lets one node in."""
        frame = await self.ask(
            Operation.CREATE_JOIN_TOKEN, CreateJoinTokenHeader(), timeout_s=WORK_SECONDS_MAX
        )
        return frame.unpack(IssuedJoinToken).secret

    async def topics(self, *, timeout_s: float = WORK_SECONDS_MAX) -> tuple[TopicInfo, ...]:
        """Return the topics that the node knows."""
        frame = await self.ask(Operation.LIST_TOPICS, timeout_s=timeout_s)
        return frame.read_large(TopicsAnswer).topics

    async def describe(self, topic: str, *, timeout_s: float = WORK_SECONDS_MAX) -> TopicInfo:
        """Return a topic as the node sees it."""
        header = TopicHeader(topic)
        frame = await self.ask(Operation.DESCRIBE_TOPIC, header, timeout_s=timeout_s)
        return frame.read_large(TopicInfo)

    async def create_topic(
        self, name: str, *, partitions: int = 1, config: TopicConfig | None = None
    ) -> TopicInfo:
        """Make a topic through the node."""
        header = CreateTopicHeader(name, partitions, config or TopicConfig())
        frame = await self.ask(Operation.CREATE_TOPIC, header, timeout_s=WORK_SECONDS_MAX)
        return frame.read_large(TopicInfo)

    async def delete_topic(self, name: str) -> None:
        """Remove a topic through the node."""
        await self.ask(Operation.DELETE_TOPIC, TopicHeader(name), timeout_s=WORK_SECONDS_MAX)

    async def open_producer(self) -> Producer:
        """Return a new producer's identity."""
        frame = await self.ask(
            Operation.OPEN_PRODUCER, OpenProducerHeader(), timeout_s=WORK_SECONDS_MAX
        )
        return frame.read(Producer)

    async def publish(
        self,
        topic: str,
        partition: int,
        batches: Sequence[Buffer],
        *,
        mode: DeliveryMode | None = None,
        timeout_s: float = WORK_SECONDS_MAX,
    ) -> tuple[Ack, ...]:
        """Publish through the node."""
        header = PublishHeader(topic, partition, mode)
        frame = await self.ask(Operation.PUBLISH, header, batches, timeout_s=timeout_s)
        return frame.read(PublishAnswer).acks

    async def store(self, topic: str, partition: int, values: Sequence[bytes]) -> Ack:
        """Publish records through the node, again while it says that nothing was taken yet.

        On a busy machine a leader may lose its place, or a disk be slow: nodes ask for another try
        then. Where nobody knows whether something was taken the error is raised: it is not sent
        twice.
        """
        deadline = asyncio.get_running_loop().time() + WORK_SECONDS_MAX
        while True:
            try:
                (ack,) = await self.publish(topic, partition, [bytes(encode(values))])
            except OutcomeUnknown:
                raise
            except AngariumError as error:
                if not error.retriable or asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(AGAIN_AFTER_S)
            else:
                return ack

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: Offset,
        *,
        bytes_max: int = 4 << 20,
        fresh: bool = False,
    ) -> FetchResult:
        """Read through the node: from its own replica, unless `fresh` or it has none."""
        header = FetchHeader(topic, partition, offset, bytes_max, 0, fresh)
        frame = await self.ask(Operation.FETCH, header, timeout_s=WORK_SECONDS_MAX)
        return frame.read(FetchAnswer).result(tuple(split(frame.payload)))

    async def drain(self, node: NodeId, *, draining: bool = True) -> None:
        """Have everything moved away from a node."""
        await self.ask(
            Operation.DRAIN_NODE, DrainNodeHeader(node, draining), timeout_s=WORK_SECONDS_MAX
        )

    async def remove(self, node: NodeId) -> None:
        """Have the cluster forget a node."""
        await self.ask(Operation.REMOVE_NODE, RemoveNodeHeader(node), timeout_s=WORK_SECONDS_MAX)

    async def transfer(self, topic: str, partition: int, to: NodeId) -> None:
        """Have a partition led by `to`."""
        header = TransferLeaderHeader(topic, partition, to)
        await self.ask(Operation.TRANSFER_LEADER, header, timeout_s=WORK_SECONDS_MAX)

    async def raise_level(self, level: int | None = None) -> int:
        """Have the cluster work at a higher feature level; return the one it works at."""
        frame = await self.ask(
            Operation.RAISE_LEVEL, RaiseLevelHeader(level), timeout_s=WORK_SECONDS_MAX
        )
        return frame.read(LevelAnswer).level
