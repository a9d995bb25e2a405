"""Topics behind the contract: names to partitions, settings to the catalog's form and back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.api import TopicConfig, TopicInfo
from angarium.api.settings import check, kept, told, word_of
from angarium.api.transactions import HOMES_TOPIC
from angarium.errors import AlreadyExists, InvalidArgument, NotFound, PreconditionFailed
from angarium.machine.catalog import TopicAlter, TopicCreate, TopicDelete, TopicSettings
from angarium.machine.catalog.regions import (
    HOMED,
    needed_region,
    told_of_loss,
    uses_regions,
    usual_replication,
)
from angarium.machine.catalog.topics import PARTITIONS_MAX
from angarium.machine.catalog.values import Cleanup
from angarium.node.release import REGIONS_LEVEL, WITNESS_LEVEL
from angarium.service.makers import current_maker
from angarium.service.partitions import Partitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import NodeId
    from angarium.machine.catalog import Partition, Topic
    from angarium.service.dispatching import Dispatcher
    from angarium.service.own_node import OwnNode

REPLICATION = 3
"""Replicas of a topic whose maker did not say how many, if there are hosts enough."""

SETTLE_S_MAX = 2.0
"""How long the maker of a topic waits for it to be ready. Then the topic exists all the same."""

SETTLE_POLL_S = 0.005
"""How often to look whether a new topic is ready."""


class Topics:
    """Looks topics up in this node's catalog, and has them made, altered and deleted."""

    def __init__(self, node: OwnNode, dispatcher: Dispatcher) -> None:
        self._node = node
        self.partitions = Partitions(node, dispatcher)

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
        """Return a partition, if need be after asking whether it has just been added elsewhere.

        Whoever asks for it may have heard of it from a node that knows more than this one.
        """
        await self.find(name)
        try:
            return self._node.catalog.partition(name, number)
        except NotFound:
            await self._node.catalog.catch_up()
            return self._node.catalog.partition(name, number)

    async def leader(self, partition: Partition, *, named: NodeId | None = None) -> NodeId:
        """Return the node to ask for `partition`: its leader, or a replica that may know it.

        `named` is who leads as the one asked last has said: a node without a replica learns it so.
        """
        node = self._node
        leader = node.leader_of(partition.group)
        if leader is not None and leader != node.id:
            return leader
        if partition.group not in node.replicas.here:
            # The one that was named first; sorting is stable.
            for replica in sorted(partition.replicas, key=lambda one: one != named):
                if node.peers.is_up(replica):
                    return replica
        elif node.replicas.full(partition.group) is None:
            # One that was not taken in yet has not heard of a leader; the others have.
            leader = await self.partitions.leader_elsewhere(partition)
            if leader is not None and leader != node.id:
                return leader
        raise node.quorum.no_leader(partition.group)

    # --- changing ---------------------------------------------------------------------------

    async def create(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic and wait until this node can serve it or knows who does."""
        if not 0 < partitions <= PARTITIONS_MAX:
            what = f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}"
            raise InvalidArgument(what)
        catalog = self._node.catalog

        def wish() -> TopicCreate:
            settings = self.settings(config)
            self.check_level(settings)
            return TopicCreate(
                name=name, partitions=partitions, settings=settings, maker=current_maker()
            )

        try:
            await catalog.submit(wish())
        except PreconditionFailed:
            if config.replication is not None:
                raise
            # As many replicas as there can be: this node had not heard yet who has been drained.
            await catalog.catch_up()
            await catalog.submit(wish())
        topic = catalog.topic(name)
        await self._settle(topic)
        return await self.describe(topic)

    async def alter(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""
        topic = await self.find(name)
        if partitions is not None and name == HOMES_TOPIC:
            raise InvalidArgument(f"{name} cannot get more partitions: they locate transactions")
        settings = None if config is None else self.settings(config)
        self.check_level(settings)
        # Who adds partitions twice need not know that the first time is still being carried out.
        await self._until_in_force(name)
        await self._node.catalog.submit(
            TopicAlter(
                topic=topic.id, partitions=partitions, settings=settings, maker=current_maker()
            )
        )
        await self._until_in_force(name)
        return await self.describe(self._node.catalog.topic(name))

    async def _until_in_force(self, name: str) -> None:
        """Give a topic's newest layout a moment to come into force; it does so in any case."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLE_S_MAX
        while loop.time() < deadline:
            topic = self._node.catalog.find(name)
            if topic is None or not topic.unfenced:
                return
            await asyncio.sleep(SETTLE_POLL_S)

    async def delete(self, name: str) -> None:
        """Remove a topic with everything in it."""
        if name == HOMES_TOPIC:
            raise InvalidArgument(
                f"{name} cannot be deleted: the cluster decides transactions there"
            )
        topic = await self.find(name)
        await self._node.catalog.submit(TopicDelete(topic=topic.id))

    async def _settle(self, topic: Topic) -> None:
        """Give the partitions of a new topic a moment to elect leaders that may serve.

        A leader known by name would still send early callers away. Where this node has no
        replica, the leaders themselves say so.
        """
        node, loop = self._node, asyncio.get_running_loop()
        deadline = loop.time() + SETTLE_S_MAX
        partitions = node.catalog.partitions_of(topic)
        mine = [one.group for one in partitions if node.id in one.replicas]
        others = [one for one in partitions if node.id not in one.replicas]
        while loop.time() < deadline:
            if all(map(node.replicas.has_begun, mine)):
                serving = await self.partitions.in_sync(others) if others else {}
                others = [one for one in others if one.group not in serving]
                if not others:
                    return
            await asyncio.sleep(SETTLE_POLL_S)

    # --- showing ----------------------------------------------------------------------------

    async def all(self) -> tuple[TopicInfo, ...]:
        """Return every topic, by name."""
        return await self._described(list(self._node.catalog.topics()))

    async def describe(self, topic: Topic) -> TopicInfo:
        """Return a topic as this node sees it."""
        (described,) = await self._described([topic])
        return described

    async def _described(self, topics: Sequence[Topic]) -> tuple[TopicInfo, ...]:
        """Return topics, by name; other nodes are asked once for all of them."""
        partitions = [one for topic in topics for one in self._node.catalog.partitions_of(topic)]
        infos = await self.partitions.describe(partitions)
        known = {one.group: info for one, info in zip(partitions, infos, strict=True)}
        return tuple(
            TopicInfo(
                id=topic.id,
                name=topic.name,
                config=_config(topic.settings),
                partitions=tuple(known[group] for group in topic.groups),
                created_at=topic.created_at,
                caution=self._caution(topic),
                layouts=topic.layouts,
                layout=topic.layout,
                begun=topic.begun,
            )
            for topic in sorted(topics, key=lambda topic: topic.name)
        )

    def settings(self, config: TopicConfig) -> TopicSettings:
        """Return the catalog's form of a topic's settings; raises `InvalidArgument`."""
        check(config)
        replication = config.replication
        if replication is None:
            homes = config.regions if config.placement == HOMED else ()
            hosts = self._node.catalog.hosts_by_region()
            has_witness = bool(config.witness)
            replication = usual_replication(REPLICATION, homes, hosts, has_witness=has_witness)
        cleanup = Cleanup[config.cleanup.upper()]
        columns = {**kept(config), "replication": replication, "cleanup": cleanup}
        return TopicSettings(**columns)

    def check_level(self, settings: TopicSettings | None) -> None:
        """Raise `PreconditionFailed` for settings that nodes of an older release do not know."""
        if settings is None or not uses_regions(settings):
            return
        level = self._node.catalog.level
        if level < REGIONS_LEVEL:
            raise PreconditionFailed(
                f"topics that say anything about regions need feature level {REGIONS_LEVEL}, the "
                f"cluster works at {level}: upgrade every node, then `angarium cluster raise-level`"
            )
        # An older node would take it for a replica with records.
        if settings.witness and level < WITNESS_LEVEL:
            raise PreconditionFailed(
                f"topics with a witness need feature level {WITNESS_LEVEL}, the cluster works at "
                f"{level}: upgrade every node, then `angarium cluster raise-level`"
            )

    def _caution(self, topic: Topic) -> str:
        """Say which region the topic cannot do without, in a cluster that has several."""
        catalog = self._node.catalog
        if len(set(catalog.hosts_by_region()) - {""}) < 2:
            return ""
        needed: dict[str, int] = {}
        for one in catalog.partitions_of(topic):
            witness = (one.witness,) if one.witness else ()
            region = needed_region(catalog.regions_of((*(one.target or one.replicas), *witness)))
            if region is not None:
                needed[region] = needed.get(region, 0) + 1
        return told_of_loss(needed, len(topic.groups))


def _config(settings: TopicSettings) -> TopicConfig:
    """Return the same the other way."""
    return TopicConfig(**{**told(TopicConfig, settings), "cleanup": word_of(settings.cleanup)})
