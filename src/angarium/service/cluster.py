"""The cluster behind the contract: how it stands, who joins it, and who leaves."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.api import ClusterStatus, NodeInfo
from angarium.errors import AngariumError, InvalidArgument, NotFound, PreconditionFailed
from angarium.ids import CATALOG_GROUP
from angarium.machine.catalog import LevelRaise, LevelRaised, NodeDrain, NodeRemove
from angarium.node.joining import cluster_name
from angarium.node.release import new_decoy_key
from angarium.node.steering import led_by
from angarium.service.copy_check import CopyCheck
from angarium.service.joining import joined
from angarium.wire.operations import Operation, TransferLeaderHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import NodeId
    from angarium.machine.catalog import Node as Member
    from angarium.service.own_node import MemberNode
    from angarium.service.topics import Topics
    from angarium.wire.operations import JoinAnswer, JoinHeader


class Cluster:
    """Says how the cluster stands, and changes who belongs to it."""

    def __init__(self, node: MemberNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics
        self.copies = CopyCheck(node, topics.partitions)
        """Who has a full copy of what."""
        self.on_join: (
            Callable[[JoinHeader, JoinAnswer | AngariumError, Member | None], None] | None
        ) = None
        """Told of each node that wants to come in, what it was answered, and as what it was known.
        """

    async def status(self) -> ClusterStatus:
        """Return the cluster as this node sees it."""
        node = self._node
        known = node.catalog
        if not known.is_here:
            return self._alone()
        leads: dict[NodeId, int] = {}
        for partition in known.partitions():
            leader = node.leader_of(partition.group)
            if leader is not None:
                leads[leader] = leads.get(leader, 0) + 1
        nodes = tuple(
            NodeInfo(
                id=one.id,
                addresses=dict(one.addresses),
                region=one.labels.region,
                zone=one.labels.zone,
                host=one.labels.host,
                draining=one.draining,
                alive=one.id == node.id or node.peers.is_up(one.id),
                leads=leads.get(one.id, 0),
                replicas=known.replicas_on(one.id),
                level_max=one.level_max,
                unready=node.readiness.of(one.id),
                clock_ahead_ms=node.time.ahead_ms(one.id),
                clock_agrees=node.time.agrees(one.id),
                round_trip_ms=node.round_trip_ms(one.id),
            )
            for one in known.members()
        )
        return ClusterStatus(
            cluster_id=known.cluster,
            node=node.id,
            catalog_leader=node.leader_of(CATALOG_GROUP),
            catalog_index=known.applied,
            nodes=nodes,
            topics=len(known.topics()),
            partitions=len(known.partitions()),
            feature_level=known.level,
            version=node.config.release.software,
            catalog_in_sync=node.in_sync(CATALOG_GROUP),
        )

    def _alone(self) -> ClusterStatus:
        """Return what a node knows whose copy of the catalog is damaged: itself, and that."""
        node = self._node
        unready = node.readiness.reasons()
        return ClusterStatus(
            cluster_id=cluster_name(node.folder_identity),
            node=node.id,
            catalog_leader=None,
            catalog_index=node.catalog.applied,
            nodes=(NodeInfo(id=node.id, addresses=node.addresses, unready=unready),),
            topics=0,
            partitions=0,
            feature_level=node.levels.current,
            version=node.config.release.software,
        )

    async def join(self, wish: JoinHeader, name: str = "") -> JoinAnswer:
        """Take a node into the cluster, or one that was here back; return whom it will meet."""
        known = self._node.catalog.known_as(wish.node, wish.incarnation)
        try:
            answer = await joined(self._node, self.copies, wish, name)
        except AngariumError as error:
            if self.on_join is not None:
                self.on_join(wish, error, known)
            raise
        if self.on_join is not None:
            self.on_join(wish, answer, known)
        return answer

    async def drain(self, node: NodeId, *, draining: bool) -> None:
        """Move everything away from a node, or let it have replicas again.

        Raises `TooFewReplicas` while a partition there has too few full ones to be moved.
        """
        if draining:
            await self.copies.check_drain(node)
        await self._node.catalog.submit(NodeDrain(node=node, draining=draining))

    async def remove(self, node: NodeId) -> None:
        """Forget a node that holds nothing any more; one that is forgotten already stays so."""
        catalog = self._node.catalog
        await catalog.catch_up()
        if not catalog.has_been(node):
            raise NotFound(f"there is no node {node}, and never was")
        if [one.id for one in catalog.members()] == [node]:
            # It would end, as a removed node does, and nobody could let it in again.
            raise PreconditionFailed(
                f"node {node} is the only one: without it there is no cluster; to give up all it "
                "has, stop it and delete its data folder"
            )
        if catalog.member(node) is not None:
            await self.copies.check_removal(node)
        await catalog.submit(NodeRemove(node=node))

    async def raise_level(self, level: int | None = None) -> int:
        """Let the cluster use what a newer release brings; there is no way back."""
        if level is None:
            await self._node.catalog.catch_up()
            level = self._node.catalog.level_possible
        wish = LevelRaise(level=level, decoy_key=new_decoy_key(level))
        raised = await self._node.catalog.submit(wish)
        assert isinstance(raised, LevelRaised)
        return raised.level

    async def transfer_leader(self, topic: str, number: int, to: NodeId) -> None:
        """Ask a partition's leader to hand over; where leaders follow, it stays for a while."""
        partition = await self._topics.partition(topic, number)
        if to not in partition.replicas:
            raise InvalidArgument(f"node {to} has no replica of {topic!r} partition {number}")
        replica = self._node.replicas.leading(partition.group)
        if replica is None:
            leader = await self._topics.leader(partition)
            await self._node.peers.request(
                leader,
                Operation.TRANSFER_LEADER,
                TransferLeaderHeader(topic, number, to),
                timeout_s=self._node.config.request_timeout_s,
            )
            return
        if not self._node.time.clocks.trusts(to):
            raise PreconditionFailed(
                f"the clock of node {to} is wrong, as a majority of the cluster sees it: set it,"
                " then ask again"
            )
        settings = self._node.catalog.topic_of(partition).settings
        if settings.leaders_follow and not partition.target:
            # Else it would go back to where its publishers are: what was asked for is to stay.
            with suppress(PreconditionFailed):  # it moves meanwhile
                await self._node.catalog.submit(led_by(partition, to))
        for voter in replica.raft.conf_state.voters:
            if voter >> 48 == to:
                replica.raft.transfer_leader(voter)
                replica.poke()
                self._node.wake()
