"""Incarnations that were removed from the cluster, or replaced by an empty disk, and NAMEs that are
bound to no number any more.

What has been removed is never taken back: its replicas may have acknowledged what the others do not
remember. A NAME that was given up, for its key may be stolen, needs a join token to come back.
"""

from __future__ import annotations

from typing import Final

import msgspec

from angarium.ids import Incarnation, NodeId

REMOVED_MAX: Final = 1 << 16
"""Incarnations and NAMEs that are remembered. Beyond, the oldest one is forgotten."""

STAYS: Final = Incarnation(0)
"""In place of the incarnation of a node that only took another NAME."""


class RemovedNode(msgspec.Struct, frozen=True, array_like=True):
    """One incarnation, one NAME, or both."""

    node: NodeId
    incarnation: Incarnation
    name: str = ""
    """The NAME its number was bound to; empty if the number keeps it, and its disk was replaced."""


class RemovedNodes:
    """What was removed, oldest first."""

    __slots__ = ("_by_name", "by_incarnation", "rows")

    def __init__(self) -> None:
        self.rows: dict[tuple[Incarnation, str], RemovedNode] = {}
        self.by_incarnation: dict[Incarnation, RemovedNode] = {}
        self._by_name: dict[str, NodeId] = {}

    def add(self, removed: RemovedNode) -> None:
        """Add an incarnation, a NAME or both; beyond `REMOVED_MAX` the oldest row is dropped."""
        self.rows[removed.incarnation, removed.name] = removed
        if removed.incarnation != STAYS:
            self.by_incarnation[removed.incarnation] = removed
        if removed.name:
            self._by_name[removed.name] = removed.node
        if len(self.rows) > REMOVED_MAX:
            first = self.rows.pop(next(iter(self.rows)))
            if self.by_incarnation.get(first.incarnation) is first:
                del self.by_incarnation[first.incarnation]
            if self._by_name.get(first.name) == first.node:
                del self._by_name[first.name]

    def node_of(self, name: str) -> NodeId | None:
        """Return the last node that was removed under a NAME; None if there was none."""
        return self._by_name.get(name)
