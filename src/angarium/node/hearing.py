"""What a node hears of its replicas and of its links, and whom it tells."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from angarium.node.refusal_log import RefusalLog
from angarium.replica.listener import HostListener, PartitionListener

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog import CatalogApplied
    from angarium.node.node import Node
    from angarium.replica.damage import Fate
    from angarium.replica.scrutiny import Objection


class NodeListener(PartitionListener, Protocol):
    """Whom a node tells what happens in it: partitions once per turn of the loop, links at once."""

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        """Tell whether somebody waits for new records of a partition."""

    def link_changed(self, node: NodeId) -> None:
        """Hear that the link to another node went up or down."""


class Hearing(HostListener):
    """Passes on what the host tells: to those in the node whom it concerns, and to subscribers."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node
        self._refusals = RefusalLog(time.monotonic)
        self.listeners: list[NodeListener] = []
        """Told by the driver what happened in partitions, at the end of each turn of the loop."""

    def subscribe(self, listener: NodeListener) -> None:
        """Tell `listener` what happens from now on."""
        self.listeners.append(listener)

    def link_changed(self, node: NodeId) -> None:
        """Tell that a link went up or down."""
        for listener in self.listeners:
            listener.link_changed(node)

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        """Tell whether anybody on this node waits for new records of a partition."""
        return any(listener.has_readers(raft_group) for listener in self.listeners)

    def catalog_changed(self, applied: CatalogApplied | None) -> None:
        """Let the node act on another catalog."""
        self._node.catalog.changed(applied)

    def damaged(self, fate: Fate, raft_group: RaftGroupId, what: str) -> None:
        """Let damage be logged and healed."""
        self._node.healing.hear(fate, raft_group, what)

    def refused(self, objection: Objection, what: str) -> None:
        """Log what was not believed."""
        self._refusals.tell(objection, what)
