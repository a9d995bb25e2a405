"""Leaders that follow their publishers: looks at what was counted, and has the catalog say so.

Whoever leads a partition counts where its publishes come from (`origins`). When another region has
a clear majority, the leader enters a replica there as the preferred one, and hands over to it as to
every preferred leader (`Placement`). So the choice outlives restarts, everybody sees it, and there
is one rule that decides who leads.

A partition that somebody else has just spoken about is left alone for a pause: an operator's
transfer and a rebalance count as much as the publishers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, PreconditionFailed
from angarium.ids import CATALOG_GROUP, node_of
from angarium.node.origins import SLICES, Origins, followed_leader, may_follow
from angarium.node.steering import lacks_little, led_by

if TYPE_CHECKING:
    from angarium.ids import NodeId, ReplicaId
    from angarium.machine.catalog import CatalogMachine, Partition, Reassign
    from angarium.node.node import Node
    from angarium.replica.replica import Replica

_log = logging.getLogger(__name__)

CHANGES_MAX: Final = 64
"""Partitions that one node lets follow at the end of a slice. Others come with the next."""


class Following:
    """One node's share of letting leaders follow."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.origins = Origins()

    async def look(self, machine: CatalogMachine) -> None:
        """At the end of a slice, let partitions that this node leads follow their publishers."""
        now = asyncio.get_running_loop().time()
        length = self._node.config.follow_window_s / SLICES
        wishes = []
        for group in self.origins.ended_slice(now=now, length=length):
            partition = machine.topics.partitions.get(group)
            wish = None if partition is None else self._wish(machine, partition)
            if wish is not None:
                wishes.append(wish)
        for wish in wishes[:CHANGES_MAX]:
            _log.info("group %s follows its publishers to node %s", wish.group, wish.replicas[0])
            try:
                await self._node.catalog.submit(wish)
            except PreconditionFailed:
                continue  # moved meanwhile
            except AngariumError:
                return  # nobody answers for the catalog: each would wait as long. Later

    def _wish(self, machine: CatalogMachine, partition: Partition) -> Reassign | None:
        node, group, nodes = self._node, partition.group, machine.nodes.by_id
        replica = node.host.replicas.get(group)
        if (
            replica is None
            or not replica.may_serve
            or partition.target
            or not machine.topics.by_id[partition.topic].settings.leaders_follow
            or not may_follow(partition, now=node.now(), pause_s=node.config.follow_pause_s)
            # It moves soon; until then the catalog would refuse, in an entry for every slice.
            or any(one not in nodes or nodes[one].draining for one in partition.replicas)
        ):
            return None

        def may_lead(one: NodeId) -> bool:
            if one == node.id:
                return not node.time.is_wrong and not node.host.wal.is_full
            return could_lead(node, replica, nodes[one].replica_in(group))

        to = followed_leader(
            partition.replicas,
            {one: nodes[one].labels.region for one in partition.replicas},
            self.origins.window(group),
            could_lead=may_lead,
        )
        return None if to is None else led_by(partition, to)


def could_lead(node: Node, replica: Replica, other: ReplicaId) -> bool:
    """Tell whether a leader may hand over to another replica now, and it would keep what it got."""
    return (
        node.is_here(replica.group, other)
        and node.time.clocks.trusts(node_of(other))
        # It would give the partition away at once, and get it back, and so on.
        and not node.readiness.is_disk_full(node_of(other))
        and lacks_little(replica, other)
        # If it has just started it serves nothing before there is one (`Recovering`).
        and node.leader_of(CATALOG_GROUP) is not None
    )
