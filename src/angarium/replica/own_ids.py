"""Who a node is in each of its groups: in almost all of them the same.

A replica id is a node and an incarnation. The incarnation is that of the node's disk, but for
groups whose replica was lost to damage and came back as somebody else (`log.renewals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import Incarnation, replica_id
from angarium.log import renewals

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId, ReplicaId
    from angarium.log.disk import Disk


class OwnReplicaIds:
    """The replica ids of one node."""

    def __init__(self, disk: Disk, *, node: NodeId, incarnation: Incarnation) -> None:
        self._disk = disk
        self._node = node
        self.usual: ReplicaId = replica_id(node, incarnation)
        """Who it is wherever nothing was lost."""
        self.renewed: dict[RaftGroupId, Incarnation] = {}
        self.unreadable: set[RaftGroupId] = set()
        """Groups in which nobody can say any more who this node was."""
        self.disowned = renewals.load_lost(disk)
        """Groups that the log has lost: unless it knows them again, this node is nobody there."""
        for group, known in renewals.load(disk).items():
            if known is None:
                self.unreadable.add(group)
            else:
                self.renewed[group] = known
        self._own = {self.usual, *map(self.in_group, self.renewed)}

    def in_group(self, group: RaftGroupId) -> ReplicaId:
        """Return who this node is in `group`."""
        incarnation = self.renewed.get(group)
        return self.usual if incarnation is None else replica_id(self._node, incarnation)

    def is_own(self, replica: ReplicaId) -> bool:
        """Tell whether a replica lives here, in whatever group."""
        return replica in self._own

    def save(self, group: RaftGroupId, incarnation: Incarnation) -> None:
        """Make durable who this node will be in `group`. Blocks; may run in a thread."""
        # First the new name, then the note that the old one is lost goes: a crash in between
        # leaves a replica that is nobody, which is safe, and never one that is its old self.
        renewals.save(self._disk, group, incarnation)
        renewals.forget_lost(self._disk, group)

    def disown(self, group: RaftGroupId) -> None:
        """Be nobody in `group` until it is renewed, however often the node restarts. Blocks."""
        # Durable, since the next start would find neither log nor files and begin as the voter it
        # was. Planted as lost-replica-begins-anew-as-itself.
        if group not in self.disowned:
            renewals.save_lost(self._disk, group)
            self.disowned.add(group)

    def adopt(self, group: RaftGroupId, incarnation: Incarnation) -> None:
        """Be somebody else in `group` from now on, as was saved before."""
        self.renewed[group] = incarnation
        self.unreadable.discard(group)
        self.disowned.discard(group)
        self._own.add(self.in_group(group))
