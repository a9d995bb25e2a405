"""Nodes join, drain and leave. Ids go upward and are never given to anybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import InvalidArgument, NotFound, PreconditionFailed
from angarium.ids import NodeId
from angarium.machine.catalog.values import LevelRaised, Node, NodeRegistered
from angarium.machine.outcomes import Done, Refused, limited, refused

if TYPE_CHECKING:
    from angarium.ids import Incarnation, RaftGroupId
    from angarium.machine.catalog.commands import LevelRaise, NodeDrain, NodeRegister, NodeRemove
    from angarium.machine.catalog.placement import Loads

NODE_ID_MAX: Final = (1 << 14) - 1
"""A node id is part of a replica id and fits 14 bits. Beyond, no node can join."""

ADDRESSES_MAX: Final = 16
ADDRESS_CHARACTERS_MAX: Final = 256
LABEL_CHARACTERS_MAX: Final = 64

NAMED_NODES_MAX: Final = 8
"""Nodes a refusal names; the operator will have enough to do with these."""


class Nodes:
    """The members of the cluster, and the feature level they have agreed on."""

    __slots__ = ("by_id", "level", "next_id")

    def __init__(self) -> None:
        self.by_id: dict[NodeId, Node] = {}
        self.next_id = 1
        self.level = 1

    def placeable(self) -> list[Node]:
        """Return the nodes that may be given replicas, by id."""
        return [self.by_id[one] for one in sorted(self.by_id) if not self.by_id[one].draining]

    def register(self, command: NodeRegister) -> NodeRegistered | Refused:
        """Let a node in. Asking again with the same incarnation gives the same id."""
        verdict = self._judge(command)
        if verdict is not None:
            return verdict
        old = self._known(command)
        if old is None:
            if command.node is not None:
                return refused(NotFound, f"there is no node {command.node}")
            if self.next_id > NODE_ID_MAX:
                return limited("NODE_ID_MAX", "no more nodes can join")
            node_id = NodeId(self.next_id)
            self.next_id += 1
        else:
            node_id = old.id
        self.by_id[node_id] = Node(
            id=node_id,
            incarnation=command.incarnation,
            addresses=command.addresses,
            labels=command.labels,
            level_min=command.level_min,
            level_max=command.level_max,
            # Who is back after a recovery without it gets replicas again.
            draining=old is not None and old.draining and not old.gone,
            renewed=_renewed(command, old),
        )
        return NodeRegistered(node_id)

    def knows(self, command: NodeRegister) -> bool:
        """Tell whether this very node, with these data, is a member already."""
        known = self._known(command)
        return known is not None and known.incarnation == command.incarnation

    def drain(self, command: NodeDrain) -> Done | Refused:
        """Mark a node, or unmark it."""
        node = self.by_id.get(command.node)
        if node is None:
            return refused(NotFound, f"there is no node {command.node}")
        if node.draining == command.draining and not node.gone:
            return Done(changed=False)
        self.by_id[node.id] = msgspec.structs.replace(node, draining=command.draining, gone=False)
        return Done()

    def remove(self, command: NodeRemove, loads: Loads) -> Done | Refused:
        """Forget a node that has no replica and gets none."""
        if command.node not in self.by_id:
            return Done(changed=False)
        held = loads.replicas.get(command.node, 0)
        if held:
            return refused(
                PreconditionFailed,
                f"node {command.node} still holds {held} replicas: drain it first",
            )
        del self.by_id[command.node]
        return Done()

    def raise_level(self, command: LevelRaise) -> LevelRaised | Refused:
        """Work at a higher level from here on, if every node can."""
        possible = self.level_possible
        if command.level > possible:
            lagging = [one for one in self.by_id.values() if one.level_max < command.level]
            named = ", ".join(f"node {one.id}" for one in lagging[:NAMED_NODES_MAX])
            return refused(
                PreconditionFailed,
                f"level {command.level} is not known to every node, {possible} is; upgrade first, "
                f"or remove: {named or 'no node is registered'}",
            )
        if command.level < self.level:
            return refused(PreconditionFailed, f"the level is {self.level} and does not go down")
        self.level = command.level
        return LevelRaised(self.level)

    @property
    def level_possible(self) -> int:
        """The highest level that every node knows."""
        return min((node.level_max for node in self.by_id.values()), default=self.level)

    def _known(self, command: NodeRegister) -> Node | None:
        if command.node is not None:
            return self.by_id.get(command.node)
        for node in self.by_id.values():
            if node.incarnation == command.incarnation:
                return node
        return None

    def _judge(self, command: NodeRegister) -> Refused | None:
        labels = command.labels
        if not command.level_min <= self.level <= command.level_max:
            remedy = (
                "start the node with a newer release"
                if command.level_max < self.level
                else "upgrade the other nodes and raise the level, or start an older release"
            )
            return refused(
                PreconditionFailed,
                f"the cluster works at feature level {self.level}, the node knows levels "
                f"{command.level_min} to {command.level_max}; {remedy}",
            )
        if len(command.addresses) > ADDRESSES_MAX or any(
            len(part) > ADDRESS_CHARACTERS_MAX for pair in command.addresses for part in pair
        ):
            return refused(InvalidArgument, "too many or too long addresses")
        if max(map(len, (labels.region, labels.zone, labels.host))) > LABEL_CHARACTERS_MAX:
            return refused(InvalidArgument, "a label is too long")
        return None


def _renewed(
    command: NodeRegister, old: Node | None
) -> tuple[tuple[RaftGroupId, Incarnation], ...]:
    if command.renewed is not None:
        return command.renewed
    # With another disk it is somebody else in every group.
    is_same_disk = old is not None and old.incarnation == command.incarnation
    return old.renewed if old is not None and is_same_disk else ()
