"""How a host tells whoever drives it what happens in its replicas.

The driver hands one `HostListener` in when it opens the host, and there is no other way. The node's
event loop has one (`node/hearing.py`), the simulator another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import RaftGroupId
    from angarium.machine.catalog import CatalogApplied
    from angarium.replica.damage import Fate
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.scrutiny import Objection


class PartitionListener(Protocol):
    """Hears what happens in partitions, once it is over: it may look at replicas and use them."""

    def records_visible(self, raft_group: RaftGroupId) -> None:
        """Hear that a partition has new records to read, or is gone."""

    def partition_changed(self, raft_group: RaftGroupId) -> None:
        """Hear that somebody else leads, or something other than an append was applied.

        Groups may have moved, and records may have been trimmed.
        """


class HostListener:
    """Hears what happens while a host handles an input; what is not overridden is not heard.

    Nothing may be asked of the host from here: it is in the middle of something. `tell` passes on
    what happened in partitions when the input is dealt with, once for each partition.
    """

    def __init__(self) -> None:
        self.has_news = False
        """Whether something happened in a partition since it was last told."""
        # Ordered, so that the simulator's runs repeat.
        self._visible: dict[RaftGroupId, None] = {}
        self._changed: dict[RaftGroupId, None] = {}

    def records_visible(self, raft_group: RaftGroupId) -> None:
        """Note that a partition has new records to read."""
        self._visible[raft_group] = None
        self.has_news = True

    def partition_changed(self, raft_group: RaftGroupId) -> None:
        """Note that a replica began or ceased to lead, or applied something but an append."""
        self._changed[raft_group] = None
        self.has_news = True

    def tell(self, listeners: Iterable[PartitionListener]) -> None:
        """Tell what was noted since the last time: first of new records, then of all else."""
        self.has_news = False
        visible, self._visible = self._visible, {}
        for listener in listeners:
            for raft_group in visible:
                listener.records_visible(raft_group)
        changed, self._changed = self._changed, {}
        for listener in listeners:
            for raft_group in changed:
                listener.partition_changed(raft_group)

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        """Tell whether somebody on this node waits for new records of a partition."""
        del raft_group
        return False

    def started(self, replica: PartitionReplica) -> None:
        """Hear that a replica begins to work: at once, or after a repair."""

    def catalog_changed(self, applied: CatalogApplied | None) -> None:
        """Hear what an entry of the catalog touched; None: a snapshot, and anything may differ."""

    def damaged(self, fate: Fate, raft_group: RaftGroupId, what: str) -> None:
        """Hear what became of damage, in words."""

    def refused(self, objection: Objection, what: str) -> None:
        """Hear what came from another node and was not believed."""
