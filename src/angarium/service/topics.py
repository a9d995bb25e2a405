"""Topics behind the contract: names to partitions, settings to the catalog's form and back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.api import TopicConfig, TopicInfo
from angarium.api.transactions import HOMES_TOPIC
from angarium.errors import AlreadyExists, InvalidArgument, NotFound, NotLeader
from angarium.machine.catalog import TopicAlter, TopicCreate, TopicDelete, TopicSettings
from angarium.machine.catalog.placement import host_of
from angarium.machine.catalog.topics import PARTITIONS_MAX
from angarium.machine.catalog.values import Cleanup
from angarium.replica.host import ORIGIN
from angarium.service.partitions import PartitionDesk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import NodeId
    from angarium.machine.catalog import Partition, Topic
    from angarium.node.node import Node
    from angarium.service.dispatching import Dispatcher

MILLISECOND_MICROS = 1_000
REPLICATION = 3
"""Replicas of a topic whose maker did not say how many, if there are hosts enough."""

SETTLE_POLL_S = 0.005
"""How often to look whether a new topic is ready."""


class TopicDesk:
    """Looks topics up in this node's catalog, and has them made, altered and deleted."""

    def __init__(self, node: Node, dispatcher: Dispatcher) -> None:
        self._node = node
        self.partitions = PartitionDesk(node, dispatcher)

    # --- finding ----------------------------------------------------------------------------

    async def find(self, name: str) -> Topic:
        """Return a topic, if need be after asking whether it has just been made elsewhere."""
        try:
            return self._node.catalog.topic(name)
        except NotFound:
            await self._node.catalog.catch_up()
            return self._node.catalog.topic(name)

    async def find_or_make(self, name: str) -> Topic:
        """Return a topic; one that is not there is made, if the node's settings say so."""
        try:
            return await self.find(name)
        except NotFound:
            if not self._node.config.auto_create_topics:
                raise
        with suppress(AlreadyExists):  # somebody else was faster
            await self.create(name, partitions=1, config=TopicConfig())
        return await self.find(name)

    async def partition(self, name: str, number: int) -> Partition:
        """Return a partition's place; raises `NotFound`."""
        await self.find(name)
        return self._node.catalog.partition(name, number)

    async def leader(self, partition: Partition) -> NodeId:
        """Return the node to ask for `partition`: its leader, or a replica that may know it."""
        node = self._node
        leader = node.leader_of(partition.group)
        if leader is not None and leader != node.id:
            return leader
        if partition.group not in node.host.replicas:
            for replica in partition.replicas:
                if node.peers.is_up(replica):
                    return replica
        raise NotLeader(f"group {partition.group} has no leader at the moment")

    # --- changing ---------------------------------------------------------------------------

    async def create(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic and wait until this node can serve it or knows who does."""
        if not 0 < partitions <= PARTITIONS_MAX:
            what = f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}"
            raise InvalidArgument(what)
        settings = self.settings(config)
        await self._node.catalog.submit(
            TopicCreate(name=name, partitions=partitions, settings=settings)
        )
        topic = self._node.catalog.topic(name)
        await self._settle(topic)
        return await self.describe(topic)

    async def alter(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""
        topic = await self.find(name)
        if partitions is not None and name == HOMES_TOPIC:
            raise InvalidArgument(f"{name} keeps its partitions: transactions are found by them")
        settings = None if config is None else self.settings(config)
        await self._node.catalog.submit(
            TopicAlter(topic=topic.id, partitions=partitions, settings=settings)
        )
        return await self.describe(self._node.catalog.topic(name))

    async def delete(self, name: str) -> None:
        """Remove a topic with everything in it."""
        if name == HOMES_TOPIC:
            raise InvalidArgument(f"{name} stays: the cluster decides transactions there")
        topic = await self.find(name)
        await self._node.catalog.submit(TopicDelete(topic=topic.id))

    async def _settle(self, topic: Topic) -> None:
        """Give the partitions of a new topic a moment to elect leaders that may serve.

        The first entry that a partition commits is its leader's own, and from then on it serves:
        a leader known by name would still send whoever comes at once away.
        """
        node = self._node
        deadline = asyncio.get_running_loop().time() + 2.0
        mine = [
            group
            for group in topic.groups
            if node.id in node.catalog.machine.topics.partitions[group].replicas
        ]
        while asyncio.get_running_loop().time() < deadline:
            replicas = [node.host.replicas.get(group) for group in mine]
            if all(one is not None and one.applied > ORIGIN for one in replicas):
                return
            await asyncio.sleep(SETTLE_POLL_S)

    # --- showing ----------------------------------------------------------------------------

    async def all(self) -> tuple[TopicInfo, ...]:
        """Return every topic, by name."""
        topics = self._node.catalog.machine.topics
        return await self._described([topics.by_id[topics.by_name[one]] for one in topics.by_name])

    async def describe(self, topic: Topic) -> TopicInfo:
        """Return a topic as this node sees it."""
        (described,) = await self._described([topic])
        return described

    async def _described(self, topics: Sequence[Topic]) -> tuple[TopicInfo, ...]:
        """Return topics, by name; whoever else has to be asked is asked once for all of them."""
        places = self._node.catalog.machine.topics.partitions
        groups = [group for topic in topics for group in topic.groups]
        infos = await self.partitions.describe([places[group] for group in groups])
        known = dict(zip(groups, infos, strict=True))
        return tuple(
            TopicInfo(
                id=topic.id,
                name=topic.name,
                config=_config(topic.settings),
                partitions=tuple(known[group] for group in topic.groups),
                created_at=topic.created_at,
            )
            for topic in sorted(topics, key=lambda topic: topic.name)
        )

    def settings(self, config: TopicConfig) -> TopicSettings:
        """Return the catalog's form of a topic's settings."""
        replication = config.replication
        if replication is None:
            nodes = self._node.catalog.machine.nodes.placeable()
            replication = max(1, min(REPLICATION, len(set(map(host_of, nodes)))))
        return TopicSettings(
            replication=replication,
            mode=config.mode,
            retention_micros=_times(config.retention_ms, MILLISECOND_MICROS),
            retention_bytes=config.retention_bytes,
            until_consumed=config.retention_groups,
            expiry_micros=_times(config.expiry_ms, MILLISECOND_MICROS),
            cleanup=Cleanup[config.cleanup.upper()],
            tombstone_micros=config.tombstone_ms * MILLISECOND_MICROS,
            dirty_percent=config.dirty_percent,
            batch_bytes_max=config.batch_bytes_max,
        )


def _config(settings: TopicSettings) -> TopicConfig:
    return TopicConfig(
        replication=settings.replication,
        mode=settings.mode,
        retention_ms=_per(settings.retention_micros, MILLISECOND_MICROS),
        retention_bytes=settings.retention_bytes,
        retention_groups=settings.until_consumed,
        batch_bytes_max=settings.batch_bytes_max,
        expiry_ms=_per(settings.expiry_micros, MILLISECOND_MICROS),
        cleanup="compact" if settings.cleanup is Cleanup.COMPACT else "delete",
        tombstone_ms=settings.tombstone_micros // MILLISECOND_MICROS,
        dirty_percent=settings.dirty_percent,
    )


def _per(value: int | None, factor: int) -> int | None:
    return None if value is None else value // factor


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor
