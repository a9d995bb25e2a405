"""Asking one particular node what it sees. The client would ask the first that answers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import ClusterStatus, TopicConfig, TopicInfo
from angarium.client.login import Login
from angarium.errors import AngariumError, Unreachable
from angarium.security.tls import client_tls
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import CreateTopicHeader, Operation, TopicHeader, TopicsAnswer

if TYPE_CHECKING:
    from angarium.addresses import Address
    from angarium.security.tls import TlsOptions
    from angarium.wire import Connection, Frame, Header

ANSWER_SECONDS_MAX: Final = 2.0
"""A node that takes longer counts as silent."""


class View(NamedTuple):
    """What one node sees."""

    status: ClusterStatus
    topics: tuple[TopicInfo, ...]


class Probe:
    """A connection to one node, opened anew when it breaks."""

    def __init__(
        self, address: Address, *, tls: TlsOptions | None = None, login: Login | None = None
    ) -> None:
        """Without `tls` and `login` the environment says whom to believe, and who to be."""
        self.address = address
        self.trouble = ""
        """What it said the last time instead of an answer; empty if it said nothing at all."""
        self._tls = tls
        self._login = login or Login.of()
        self._connection: Connection | None = None

    async def view(self) -> View | None:
        """Return what the node sees; None if it does not answer."""
        try:
            status = await self._ask(Operation.CLUSTER_STATUS)
            topics = await self._ask(Operation.LIST_TOPICS)
            found = View(status.read(ClusterStatus), topics.read_large(TopicsAnswer).topics)
        except AngariumError as error:
            self.trouble = "" if isinstance(error, Unreachable) else str(error)
            return None
        self.trouble = ""
        return found

    async def topic(self, name: str) -> TopicInfo:
        """Return a topic as the node sees it; raises why not."""
        return (await self._ask(Operation.DESCRIBE_TOPIC, TopicHeader(name))).read_large(TopicInfo)

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> None:
        """Create a topic through this node."""
        await self._ask(Operation.CREATE_TOPIC, CreateTopicHeader(name, partitions, config))

    async def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            with suppress(AngariumError, TimeoutError):
                await self._connection.close(timeout_s=0.5)

    async def _ask(self, operation: Operation, header: Header = b"") -> Frame:
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._dialled()
        return await self._connection.request(operation, header, timeout_s=ANSWER_SECONDS_MAX)

    async def _dialled(self) -> Connection:
        connection = await dial(
            host=self.address.host,
            port=self.address.port,
            hello=Hello(role=Role.CLIENT, auth=self._login.greeting()),
            timeout_s=ANSWER_SECONDS_MAX,
            tls=client_tls(self._tls),
        )
        try:
            await self._login.prove(connection, timeout_s=ANSWER_SECONDS_MAX)
        except BaseException:
            connection.abort()
            raise
        return connection
