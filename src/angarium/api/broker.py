"""The contract itself: one method for each thing that can be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from angarium.api.groups import GroupBroker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api.cluster import ClusterStatus
    from angarium.api.publishing import Ack, Producer, PublishRequest
    from angarium.api.reading import FetchRequest, FetchResult, Interest, Start, Subscription
    from angarium.api.topics import TopicConfig, TopicInfo
    from angarium.ids import NodeId, Offset


class Broker(GroupBroker, Protocol):
    """What a broker does. A node's service implements it, and so does the client."""

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store or hand over batches; one answer per batch, in their order."""

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches; an empty topic gives an empty result, not an error."""

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions."""

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a new identity, or with a name the same one in a new epoch."""

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic; `AlreadyExists` if there is another one of that name."""

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""

    async def delete_topic(self, name: str) -> None:
        """Remove a topic with everything in it."""

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics, by name."""

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic; `NotFound`."""

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster as this node sees it."""

    async def drain_node(self, node: NodeId, *, draining: bool) -> None:
        """Move everything away from a node, or let it have replicas again."""

    async def remove_node(self, node: NodeId) -> None:
        """Forget a node that holds nothing any more."""

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        """Ask a partition's leader to hand over."""

    async def raise_level(self, level: int | None = None) -> int:
        """Let the cluster work at a higher feature level; None: the highest that every node knows.

        The end of an upgrade: releases that do not know the level can no longer take part. Returns
        the level; `PreconditionFailed` names the nodes that are too old for it.
        """
