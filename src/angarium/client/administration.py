"""Administration: topics and nodes, as the contract has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api import Producer, TopicConfig, TopicInfo
from angarium.api.settings import level_of
from angarium.errors import NotFound
from angarium.wire.operations import (
    AlterTopicHeader,
    CreateTopicHeader,
    DrainNodeHeader,
    LevelAnswer,
    OpenProducerHeader,
    Operation,
    RaiseLevelHeader,
    RemoveNodeHeader,
    TopicHeader,
    TransferLeaderHeader,
)

if TYPE_CHECKING:
    from angarium.api import ClusterStatus
    from angarium.client.reach import Reach
    from angarium.ids import NodeId


class Administration(ABC):
    """The administrative half of a client.

    What would take effect twice is not repeated when its outcome is unknown: the caller hears
    `OutcomeUnknown` and can look.
    """

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def create_topic(
        self, name: str, *, partitions: int = 1, config: TopicConfig | None = None
    ) -> TopicInfo:
        """Make a topic; `AlreadyExists` if there is one of that name with other settings.

        Asking for the same one again gives the one that is there.
        """
        header = CreateTopicHeader(name, partitions, config or TopicConfig())
        return await self._topic(Operation.CREATE_TOPIC, header)

    async def alter_topic(
        self, name: str, *, partitions: int | None = None, config: TopicConfig | None = None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings.

        Whoever was asked may end before it answers: others are asked then, because a topic that
        has the partitions and settings already stays as it is.
        """
        return await self._topic(
            Operation.ALTER_TOPIC, AlterTopicHeader(name, partitions, config), may_repeat=True
        )

    async def delete_topic(self, name: str) -> None:
        """Remove a topic with everything in it."""
        await self._reach.calls.ask(Operation.DELETE_TOPIC, TopicHeader(name), may_repeat=False)
        self._reach.routes.forget_topic(name)

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics, by name."""
        return await self._reach.metadata.topics()

    async def describe_topic(self, name: str, *, or_new: bool = False) -> TopicInfo:
        """Return one topic; `NotFound`.

        With `or_new` one that is not there is made, if the cluster is set to do so for those who
        publish.
        """
        try:
            return await self._reach.metadata.refresh(name)
        except NotFound:
            if not or_new:
                raise
            return await self._reach.metadata.topic_or_new(name)

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a producer's identity, for those who number batches themselves."""
        frame = await self._reach.calls.ask(Operation.OPEN_PRODUCER, OpenProducerHeader(name))
        return frame.read(Producer)

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster, as one of its nodes sees it."""
        return await self._reach.metadata.status()

    async def drain_node(self, node: NodeId, *, draining: bool = True) -> None:
        """Move everything away from a node, or let it have replicas again."""
        await self._reach.calls.ask(Operation.DRAIN_NODE, DrainNodeHeader(node, draining))

    async def remove_node(self, node: NodeId) -> None:
        """Forget a node that holds nothing any more.

        Whoever was asked may be that node, and end before it answers: others are asked then. Ids
        are never given again, so a removal that is repeated finds it done.
        """
        await self._reach.metadata.status()  # so that there are others to ask
        await self._reach.calls.ask(Operation.REMOVE_NODE, RemoveNodeHeader(node))

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        """Ask a partition's leader to hand over."""
        await self._reach.calls.ask(
            Operation.TRANSFER_LEADER, TransferLeaderHeader(topic, partition, to)
        )

    async def raise_level(self, level: int | None = None) -> int:
        """Let the cluster work at a higher feature level, the end of an upgrade; see `api.Broker`.

        None stands for the highest level that every node knows.
        """
        frame = await self._reach.calls.ask(Operation.RAISE_LEVEL, RaiseLevelHeader(level))
        return frame.read(LevelAnswer).level

    async def _topic(
        self,
        operation: Operation,
        header: CreateTopicHeader | AlterTopicHeader,
        *,
        may_repeat: bool = False,
    ) -> TopicInfo:
        frame = await self._reach.calls.ask(
            operation,
            header,
            may_repeat=may_repeat,
            is_slow=True,
            level=1 if header.config is None else level_of(header.config),
        )
        info = frame.read_large(TopicInfo)
        await self._reach.metadata.learn(info)
        return info
