"""Incarnations that were removed from the cluster, or replaced by an empty disk, and their NAMEs.

What has been removed is never taken back: its replicas may have acknowledged what the others do not
remember.
"""

from __future__ import annotations

from typing import Final

import msgspec

from angarium.ids import Incarnation, NodeId

REMOVED_MAX: Final = 1 << 16
"""Incarnations that are remembered. Beyond, the one that was removed first is forgotten."""


class RemovedNode(msgspec.Struct, frozen=True, array_like=True):
    """One incarnation."""

    node: NodeId
    incarnation: Incarnation
    name: str = ""
    """The NAME its number was bound to; empty if the number stayed, and its disk was replaced."""


class RemovedNodes:
    """The removed incarnations, oldest first."""

    __slots__ = ("_by_name", "by_incarnation")

    def __init__(self) -> None:
        self.by_incarnation: dict[Incarnation, RemovedNode] = {}
        self._by_name: dict[str, NodeId] = {}

    def add(self, removed: RemovedNode) -> None:
        """Add an incarnation; beyond `REMOVED_MAX` the oldest one is dropped."""
        self.by_incarnation[removed.incarnation] = removed
        if removed.name:
            self._by_name[removed.name] = removed.node
        if len(self.by_incarnation) > REMOVED_MAX:
            first = self.by_incarnation.pop(next(iter(self.by_incarnation)))
            if self._by_name.get(first.name) == first.node:
                del self._by_name[first.name]

    def node_of(self, name: str) -> NodeId | None:
        """Return the last node that was removed under a NAME; None if there was none."""
        return self._by_name.get(name)
