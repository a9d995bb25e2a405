"""What a node does about partitions that went on with one replica, as the catalog says.

Where this node has the replica that a partition goes on with, that one becomes its only voter.
Where it has one of those that are void, it gives it up and is a newcomer. A node that has started
serves no partition before it has looked: two void replicas would be a majority of what was.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from angarium.ids import Incarnation, NodeId, RaftGroupId, ReplicaId
    from angarium.machine.catalog import CatalogMachine, Recovery
    from angarium.node.node import Node

_log = logging.getLogger(__name__)


class Due(NamedTuple):
    """What a node has to do in one group."""

    group: RaftGroupId
    fresh: Incarnation
    """As whom it goes on there."""
    has_source: bool
    """Whether its replica is the one that the partition goes on with; if not, it is void."""


def due(
    recoveries: Iterable[Recovery], *, node: NodeId, own_in: Callable[[RaftGroupId], ReplicaId]
) -> Iterator[Due]:
    """Return where a node is still somebody that is void. Pure; the simulator asks it, too."""
    for one in recoveries:
        fresh = one.fresh_on(node)
        # Planted as void-replicas-stay.
        if fresh is not None and own_in(one.group) in one.void:
            yield Due(one.group, fresh, one.source == node)


class Recovering:
    """One node's share of it."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def look(self, machine: CatalogMachine) -> None:
        """Make true what a catalog that is current says, then let partitions be served."""
        host = self._node.host
        recoveries = machine.recoveries.by_group.values()
        for one in list(due(recoveries, node=self._node.id, own_in=host.own_ids.in_group)):
            if one.has_source:
                self._go_on(one.group, one.fresh)
            else:
                self._give_up(one.group, one.fresh)
        host.serve()

    def _go_on(self, group: RaftGroupId, fresh: Incarnation) -> None:
        host, name = self._node.host, self._node.catalog.name_of(group)
        if group not in host.replicas:
            return  # it was damaged since: the operator has to look again
        if host.go_on_alone(group, fresh):
            _log.warning("goes on alone: the others are lost for good", extra={"partition": name})
            self._node.catalog.introduce_again()
            self._node.campaign(group)
            self._node.wake()

    def _give_up(self, group: RaftGroupId, fresh: Incarnation) -> None:
        host, name = self._node.host, self._node.catalog.name_of(group)
        host.give_up_void(group, fresh)
        if group not in host.lost:
            _log.warning("went on without this node's replica", extra={"partition": name})
            self._node.catalog.introduce_again()
        self._node.hearing.records_visible(group)
        self._node.wake()
