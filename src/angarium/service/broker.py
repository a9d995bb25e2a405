"""The contract on a node: serve what this node can, ask the node that can for the rest.

Every rule about requests is enforced here, once, whichever door they come through.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api import ClusterStatus, FetchResult, Producer
from angarium.api.access import OWN_NAMES
from angarium.api.transactions import SEQUENCED, TRANSACTIONS
from angarium.errors import InvalidArgument
from angarium.ids import Epoch, NodeId, Offset, ProducerId
from angarium.machine.catalog import (
    ProducerBlock,
    ProducerOpen,
    ProducerOpened,
    ProducersIssued,
)
from angarium.node.release import QUOTA_LEVEL
from angarium.service import producer_ids
from angarium.service.backups import BackupCalls
from angarium.service.balancing import Balancing
from angarium.service.cluster import Cluster
from angarium.service.dead_letters import ServedDeadLetters
from angarium.service.dispatching import Dispatcher
from angarium.service.fetching import Fetching
from angarium.service.groups.group_calls import GroupCalls
from angarium.service.publishing import Publisher
from angarium.service.recovering import Recovering
from angarium.service.reserving import Reserving
from angarium.service.subscribing import Subscribing
from angarium.service.topics import Topics
from angarium.service.transactions.tending import Tending
from angarium.service.transactions.transaction_calls import TransactionCalls
from angarium.service.upgrading import Upgrading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.api import (
        Ack,
        Checkpoint,
        ConsumeRequest,
        Consumption,
        FetchRequest,
        GroupConfig,
        GroupInfo,
        Interest,
        Moved,
        PublishRequest,
        Settled,
        Settlement,
        Start,
        Subscription,
        TopicConfig,
        TopicInfo,
    )
    from angarium.ids import RaftGroupId
    from angarium.service.own_node import ServedNode
    from angarium.wire.operations import JoinAnswer, JoinHeader, PartitionSeen

RESERVED_PRODUCERS: Final = (TRANSACTIONS, SEQUENCED, OWN_NAMES)
"""What the names of producers do not begin with: series have theirs in the same table, and so has
the cluster for its dead letters. Who opened one of those would fence its writer."""

PRODUCER_BLOCK = 1_000
"""Producer ids a node takes from the catalog at a time, to hand out one by one."""


class Service:
    """Implements `api.Broker` on a node."""

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        self.dispatcher = Dispatcher(node)
        self.topics = Topics(node, self.dispatcher)
        self.publishing = Publisher(node, self.topics, self.dispatcher)
        self.cluster = Cluster(node, self.topics)
        self.balancing = Balancing(node, self.topics.partitions)
        self.recovering = Recovering(node)
        self.upgrading = Upgrading(node, self.topics.partitions, self.cluster.copies)
        self.fetching = Fetching(node, self.topics)
        self.reserving = Reserving(node, self.topics)
        self.subscribing = Subscribing(node, self.topics, self.fetching, self.dispatcher)
        self.transactions = TransactionCalls(node, self.topics)
        self._producers: list[int] = []
        """Numbers for producers that the catalog issued to this node."""
        self.groups = GroupCalls(node, self.topics, self.publishing)
        self.backups = BackupCalls(node, self.topics, self.groups.host)
        self._redriving = asyncio.Lock()
        node.hearing.subscribe(self)
        node.background.append(self.groups.run)
        node.background.append(self.dispatcher.run)
        node.background.append(self.balancing.run)
        tending = Tending(node, self.transactions.homes, self.transactions.participants)
        node.background.append(tending.run)

    @property
    def node(self) -> ServedNode:
        """The node that it runs on, for what stands beside it."""
        return self._node

    # --- what its node tells ----------------------------------------------------------------

    def records_visible(self, raft_group: RaftGroupId) -> None:
        """Wake those who wait for records of a partition."""
        self.fetching.announce(raft_group)
        self.groups.host.records_visible(raft_group)

    def partition_changed(self, raft_group: RaftGroupId) -> None:
        """Let groups look again at who leads them, and at what they are."""
        self.groups.host.partition_changed(raft_group)

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        """Tell whether somebody waits for new records of a partition."""
        return self.fetching.has_readers(raft_group)

    def link_changed(self, node: NodeId) -> None:
        """Tell a node that may just have come up what subscribers here want."""
        self.dispatcher.tell_one(node)

    def dead_letters(self, topic: str) -> ServedDeadLetters:
        """Return the records that groups gave up into `topic`, to look at and to send back."""
        return ServedDeadLetters(self, self.transactions, self._redriving, topic)

    # --- records ----------------------------------------------------------------------------

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store or hand over batches; one answer per batch, in their order."""
        return await self.publishing.publish(request)

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches."""
        return await self.fetching.fetch(request)

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""
        return await self.fetching.find_offset(topic, partition, start)

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions."""
        return await self.subscribing.subscribe(interests)

    async def subscribe_passing(self, topic: str, partitions: Sequence[int]) -> Subscription:
        """Begin to deliver what passes in PERFORMANCE mode, and nothing that is stored."""
        return await self.subscribing.passing(topic, partitions)

    async def reserve(self, topic: str, partition: int, count: int) -> Offset:
        """Leave the next `count` offsets of a partition empty; return the first."""
        return await self.reserving.reserve(topic, partition, count)

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a new identity, or with a name the same one in a new epoch."""
        if name is not None:
            if name.startswith(RESERVED_PRODUCERS):
                said = " nor ".join(map(repr, RESERVED_PRODUCERS))
                raise InvalidArgument(f"a producer's name does not begin with {said}")
            opened = await self._node.catalog.submit(ProducerOpen(name=name))
            assert isinstance(opened, ProducerOpened)
            return Producer(id=opened.producer, epoch=opened.epoch)
        if not self._producers:
            issued = await self._node.catalog.submit(ProducerBlock(count=PRODUCER_BLOCK))
            assert isinstance(issued, ProducersIssued)
            self._producers += range(issued.past - 1, issued.first - 1, -1)
        number = self._producers.pop()
        if self._node.catalog.level < QUOTA_LEVEL:
            # An older node would issue smaller ids, which partitions would take for forgotten.
            return Producer(id=ProducerId(number), epoch=Epoch(0))
        return Producer(id=producer_ids.issued(number), epoch=Epoch(0))

    # --- groups -----------------------------------------------------------------------------

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group."""
        return await self.groups.consume(request)

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle records for a member, wherever it is connected."""
        return await self.groups.settle(group, member, settlements)

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        """Return all groups, by name, with their lag and without their positions."""
        return await self.groups.list_groups()

    async def describe_group(self, group: str) -> GroupInfo:
        """Return one group."""
        return await self.groups.describe_group(group)

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        """Give a group other settings."""
        return await self.groups.alter_group(group, config)

    async def seek_group(
        self,
        group: str,
        *,
        topic: str | None,
        partition: int | None,
        start: Start,
        dry_run: bool,
    ) -> tuple[Moved, ...]:
        """Move a group."""
        return await self.groups.seek_group(
            group, topic=topic, partition=partition, start=start, dry_run=dry_run
        )

    async def pause_group(self, group: str, *, paused: bool) -> None:
        """Hand nothing more out, or go on."""
        await self.groups.pause_group(group, paused=paused)

    async def delete_group(self, group: str, *, topic: str | None) -> None:
        """Forget a group."""
        await self.groups.delete_group(group, topic=topic)

    async def report_checkpoints(self, group: str, checkpoints: Sequence[Checkpoint]) -> None:
        """Say how far a group of kind CHECKPOINT has come."""
        await self.groups.report_checkpoints(group, checkpoints)

    # --- topics -----------------------------------------------------------------------------

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic."""
        return await self.topics.create(name, partitions=partitions, config=config)

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""
        return await self.topics.alter(name, partitions=partitions, config=config)

    async def delete_topic(self, name: str) -> None:
        """Remove a topic with everything in it."""
        await self.topics.delete(name)

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics, by name."""
        return await self.topics.all()

    async def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic."""
        return await self.topics.describe(await self.topics.find(name))

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as far as this node knows; 0 if there is none."""
        known = self._node.catalog.find(topic)
        return 0 if known is None else len(known.groups)

    def partitions_here(
        self, groups: Iterable[RaftGroupId], *, with_sizes: bool = False
    ) -> tuple[PartitionSeen, ...]:
        """Return what this node's own replicas know, for a node that has none."""
        return self.topics.partitions.seen_here(groups, with_sizes=with_sizes)

    # --- the cluster ------------------------------------------------------------------------

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster as this node sees it."""
        return await self.cluster.status()

    async def join(self, wish: JoinHeader, name: str = "") -> JoinAnswer:
        """Admit a node that has shown a certificate for `name`; return its number, and the other
        nodes with their addresses."""
        return await self.cluster.join(wish, name)

    async def drain_node(self, node: NodeId, *, draining: bool) -> None:
        """Move everything away from a node, or let it have replicas again."""
        await self.cluster.drain(node, draining=draining)

    async def remove_node(self, node: NodeId) -> None:
        """Forget a node that holds nothing any more; one that is forgotten already stays so."""
        await self.cluster.remove(node)

    async def raise_level(self, level: int | None = None) -> int:
        """Let the cluster use what a newer release brings; there is no way back."""
        return await self.cluster.raise_level(level)

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        """Ask a partition's leader to hand over."""
        await self.cluster.transfer_leader(topic, partition, to)
