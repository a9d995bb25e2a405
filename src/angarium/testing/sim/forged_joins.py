"""Registrations that a node has not asked for: forged with what other nodes know of it.

The thief has the incarnation of a node, which every peer is told, and a certificate: that of
another node, or one that the node shares with it. None of this may change what the catalog has of
the node: where it is, on which disk, and to which NAME its number is bound.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from angarium.ids import Incarnation, Micros, NodeId
from angarium.machine.catalog import Labels, NodeJoin, NodeRegister

if TYPE_CHECKING:
    from angarium.machine.catalog import Node
    from angarium.testing.sim.rebalancing import Rebalancing

SHARE_FORGED: Final = 0.2
"""Rounds in which a registration is forged."""

SHARE_UNREACHED: Final = 0.3
"""Of those, where the leader cannot ask the node, though it lives."""

SHARE_OWN_NAME: Final = 0.4
"""Of those, by a thief of the node's own certificate."""

SHARE_ELSEWHERE: Final = 0.7
"""Of those, that would have the node at another address; the others give it other labels."""

SHARE_OTHER_DISK: Final = 0.3
"""Of those, with an empty disk."""

UNKNOWN_TOKEN: Final = bytes(32)


def name_of(node: NodeId) -> str:
    """Return the NAME in the certificate of a node."""
    return f"node-{node}"


class ForgedJoins:
    """Forges registrations, and compares the catalog with what nodes have said of themselves."""

    def __init__(self, judged: Rebalancing, seed: int) -> None:
        self._judged = judged
        self._rng = random.Random(seed)
        self._own: dict[NodeId, Node] = {}
        """What the catalog had of each node after its last registration by itself."""

    def registered(self, node: NodeId) -> None:
        """Note what a node has said of itself."""
        self._own[node] = self._judged.machine.nodes.by_id[node]

    def attempt(self) -> None:
        """Forge a registration now and then, and say what is wrong if it has changed anything."""
        rng = self._rng
        if rng.random() >= SHARE_FORGED:
            return
        command = self._forged(self._own[rng.choice(sorted(self._own))])
        if self._is_asked(command):
            return
        if rng.random() < 0.2:
            self._judged.do(NodeJoin(digest=UNKNOWN_TOKEN, registration=command))
        else:
            self._judged.do(command)
        self._judge()

    def _forged(self, victim: Node) -> NodeRegister:
        rng = self._rng
        others = [one for one in sorted(self._own) if one != victim.id]
        thief = rng.choice(others) if others else victim.id
        now = self._judged.world.scheduler.now
        is_elsewhere = rng.random() < SHARE_ELSEWHERE
        is_own_name = rng.random() < SHARE_OWN_NAME
        is_other_disk = not is_own_name and rng.random() < SHARE_OTHER_DISK
        return NodeRegister(
            node=victim.id,
            incarnation=Incarnation(rng.getrandbits(48)) if is_other_disk else victim.incarnation,
            addresses=(("wire", f"evil:{now}"),) if is_elsewhere else victim.addresses,
            labels=victim.labels if is_elsewhere else Labels("evil", f"{now}"),
            level_max=victim.level_max,
            time=Micros(now),
            name=name_of(victim.id if is_own_name else thief),
        )

    def _is_asked(self, command: NodeRegister) -> bool:
        """Tell whether the catalog's leader refuses because the node itself says no."""
        assert command.node is not None
        own = self._own[command.node]
        is_there = self._judged.world.nodes[own.id].is_up
        is_reached = is_there and self._rng.random() >= SHARE_UNREACHED
        if command.name == own.name and not is_reached:
            return True  # who has its certificate may speak for a node that cannot be asked
        return is_reached and self._judged.machine.nodes.changed_by(command) is not None

    def _judge(self) -> None:
        for node, own in self._own.items():
            known = self._judged.machine.nodes.by_id[node]
            for what in ("addresses", "incarnation", "labels", "level_max", "name"):
                if getattr(known, what) != getattr(own, what):
                    self._judged.object_to(f"a forged registration changed node {node}'s {what}")
                    self.registered(node)
