"""Nodes join, drain and leave. Ids only grow, and none is given to a second node.

Where nodes have certificates, the number of a node is bound to the NAME in the certificate that it
was first registered with. Several numbers may have one NAME: processes of one machine share a
certificate. A registration that shows another NAME needs a join token, and so does a NAME whose
last node was removed. An incarnation that was removed, or replaced by an empty disk, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import InvalidArgument, JoinRefused, NotFound, PreconditionFailed
from angarium.ids import NodeId
from angarium.machine.catalog.removed_nodes import STAYS, RemovedNode, RemovedNodes
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
NAME_CHARACTERS_MAX: Final = 128
"""Of a certificate's NAME: `security.tls.certificate` takes none that is longer."""

BOUND_NAMES_LEVEL: Final = 8
"""From this feature level on numbers are bound to NAMEs, and removed incarnations are refused."""

NAMED_NODES_MAX: Final = 8
"""Nodes a refusal names; the operator will have enough to do with these."""


class Nodes:
    """The members of the cluster, and the feature level they have agreed on."""

    __slots__ = ("by_id", "level", "next_id", "removed")

    def __init__(self) -> None:
        self.by_id: dict[NodeId, Node] = {}
        self.removed = RemovedNodes()
        self.next_id = 1
        self.level = 1

    def placeable(self) -> list[Node]:
        """Return the nodes that may be given replicas, by id."""
        return [self.by_id[one] for one in sorted(self.by_id) if not self.by_id[one].draining]

    def register(self, command: NodeRegister, *, invited: bool = False) -> NodeRegistered | Refused:
        """Let a node in. Asking again with the same incarnation gives the same id.

        `invited`: the node has brought a join token, so it may show another NAME than before.
        """
        verdict = self._judge(command)
        if verdict is None and not invited:
            verdict = self.lacks_invitation(command)
        if verdict is not None:
            return verdict
        old = self.known_as(command.node, command.incarnation)
        if old is None:
            if command.node is not None:
                return refused(NotFound, f"there is no node {command.node}")
            if self.next_id > NODE_ID_MAX:
                return limited("NODE_ID_MAX", "no more nodes can join")
            node_id = NodeId(self.next_id)
            self.next_id += 1
        else:
            node_id = old.id
        if old is not None:
            self._note_given_up(old, command)
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
            name=self._bound_name(command, old),
        )
        return NodeRegistered(node_id)

    def knows(self, command: NodeRegister) -> bool:
        """Tell whether this very node, with these data, is a member already."""
        known = self.known_as(command.node, command.incarnation)
        return known is not None and known.incarnation == command.incarnation

    def known_as(self, number: NodeId | None, incarnation: Incarnation) -> Node | None:
        """Return the member under a number, or, where none is given, with these data."""
        if number is not None:
            return self.by_id.get(number)
        for node in self.by_id.values():
            if node.incarnation == incarnation:
                return node
        return None

    def changed_by(self, command: NodeRegister) -> Node | None:
        """Return the member, with the same data, whose registration `command` would change.

        None if nothing changes. As long as the member answers, it has to confirm the change.
        """
        known = self.known_as(command.node, command.incarnation)
        # Planted as registrations-change-unasked.
        if (
            self.level < BOUND_NAMES_LEVEL
            or known is None
            or known.incarnation != command.incarnation
            or (_facts(known) == _facts(command) and command.name in ("", known.name))
        ):
            return None
        return known

    def lacks_invitation(self, command: NodeRegister) -> Refused | None:
        """Return why a registration needs a join token even where the cluster asks for none."""
        if self.level < BOUND_NAMES_LEVEL or not command.name:
            return None
        known = self.known_as(command.node, command.incarnation)
        # Planted as names-not-bound.
        if known is not None and known.name and known.name != command.name:
            return refused(
                JoinRefused,
                f"node {known.id} is bound to the NAME {known.name}, and the certificate shown is "
                f"that of {command.name}: with another NAME it needs a join token",
            )
        removed = self.removed.node_of(command.name)
        if removed is not None and not self._is_bound(command.name):
            return refused(
                JoinRefused,
                f"the NAME {command.name} was removed from the cluster with node {removed}: to "
                "come back it needs a join token",
            )
        return None

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
        node = self.by_id.get(command.node)
        if node is None:
            return Done(changed=False)
        held = loads.replicas.get(command.node, 0)
        if held:
            return refused(
                PreconditionFailed,
                f"node {command.node} still holds {held} replicas: drain it first",
            )
        del self.by_id[command.node]
        self._note_removed(RemovedNode(node.id, node.incarnation, node.name))
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

    def _is_bound(self, name: str) -> bool:
        return any(one.name == name for one in self.by_id.values())

    def _note_given_up(self, old: Node, command: NodeRegister) -> None:
        """Remember the disk and the NAME that a number had, if it has another one now."""
        incarnation = STAYS if old.incarnation == command.incarnation else old.incarnation
        name = old.name if command.name not in ("", old.name) else ""
        if incarnation != STAYS or name:
            self._note_removed(RemovedNode(old.id, incarnation, name))

    def _note_removed(self, removed: RemovedNode) -> None:
        if self.level >= BOUND_NAMES_LEVEL:
            self.removed.add(removed)

    def _bound_name(self, command: NodeRegister, old: Node | None) -> str:
        before = "" if old is None else old.name
        # Without TLS nothing is said of a NAME: what the number is bound to stays.
        return (command.name or before) if self.level >= BOUND_NAMES_LEVEL else before

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
        if len(command.name) > NAME_CHARACTERS_MAX:
            return refused(InvalidArgument, "a certificate's NAME is too long")
        removed = self.removed.by_incarnation.get(command.incarnation)
        if removed is not None:
            return refused(
                JoinRefused,
                f"these are data of node {removed.node} from before it was removed, or was given "
                "another disk: start it with an empty data folder",
            )
        return None


def _facts(one: Node | NodeRegister) -> tuple[object, ...]:
    """Return the facts in a registration that only the node itself may change."""
    return sorted(one.addresses), one.labels, one.level_min, one.level_max


def _renewed(
    command: NodeRegister, old: Node | None
) -> tuple[tuple[RaftGroupId, Incarnation], ...]:
    if command.renewed is not None:
        return command.renewed
    # With another disk it is somebody else in every group.
    is_same_disk = old is not None and old.incarnation == command.incarnation
    return old.renewed if old is not None and is_same_disk else ()
