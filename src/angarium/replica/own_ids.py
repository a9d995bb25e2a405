"""Who a node is in each of its groups: in almost all of them the same.

A replica id is a node and an incarnation. The incarnation is that of the node's disk, but for
groups whose replica was lost to damage and came back as somebody else (`log.renewals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import Incarnation, full_id, replica_id, witness_id
from angarium.log import renewals, witnessing
from angarium.log.renewals import NEVER_ALONE

if TYPE_CHECKING:
    from angarium.ids import Index, NodeId, RaftGroupId, ReplicaId
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
        self._witnessing = witnessing.load(disk)
        self._alone_from: dict[RaftGroupId, Index] = {}
        for group, known in renewals.load(disk).items():
            if known is None:
                self.unreadable.add(group)
            else:
                self._note(group, known)
        self._own = {self.usual, *map(self.as_full, self.renewed)}

    def in_group(self, group: RaftGroupId) -> ReplicaId:
        """Return who this node is in `group`."""
        full = self.as_full(group)
        return witness_id(full) if group in self._witnessing else full

    def as_full(self, group: RaftGroupId) -> ReplicaId:
        """Return who this node would be in `group` as a full replica."""
        incarnation = self.renewed.get(group)
        return self.usual if incarnation is None else replica_id(self._node, incarnation)

    def as_witness(self, group: RaftGroupId) -> ReplicaId:
        """Return who this node would be in `group` as a witness."""
        return witness_id(self.as_full(group))

    def is_own(self, replica: ReplicaId) -> bool:
        """Tell whether a replica lives here, in whatever group."""
        return full_id(replica) in self._own

    def is_witness(self, group: RaftGroupId) -> bool:
        """Tell whether this node is, or was last, a witness in `group`."""
        return group in self._witnessing

    def be(self, group: RaftGroupId, *, a_witness: bool) -> None:
        """Be a witness in `group`, durably, or a full replica. Blocks; may run in a thread.

        Only where there is no replica yet: it is part of who one is.
        """
        if a_witness and group not in self._witnessing:
            witnessing.save(self._disk, group)
            self._witnessing.add(group)
        elif not a_witness and group in self._witnessing:
            witnessing.forget(self._disk, group)
            self._witnessing.discard(group)

    def alone_from(self, group: RaftGroupId) -> Index:
        """Return up to which entry a replica's log was written before it was alone; 0: it is not.

        Whatever the log says up to there about who votes is void.
        """
        return self._alone_from.get(group, NEVER_ALONE)

    def end_solitude(self, group: RaftGroupId) -> None:
        """Be no only voter of `group` any more: its log goes, and who joins it begins empty."""
        if group in self._alone_from:
            self.save(group, self.renewed[group])
            self.adopt(group, self.renewed[group])

    def _note(self, group: RaftGroupId, renewal: renewals.Renewal) -> None:
        self.renewed[group] = renewal.incarnation
        self._alone_from.pop(group, None)
        if renewal.alone_from:
            self._alone_from[group] = renewal.alone_from

    def save(
        self, group: RaftGroupId, incarnation: Incarnation, *, alone_from: Index = NEVER_ALONE
    ) -> None:
        """Make durable who this node will be in `group`. Blocks; may run in a thread."""
        # First the new name, then the note that the old one is lost goes: a crash in between
        # leaves a replica that is nobody, which is safe, and never one that is its old self.
        renewals.save(self._disk, group, renewals.Renewal(incarnation, alone_from))
        renewals.forget_lost(self._disk, group)

    def disown(self, group: RaftGroupId) -> None:
        """Be nobody in `group` until it is renewed, however often the node restarts. Blocks."""
        # Durable, since the next start would find neither log nor files and begin as the voter it
        # was. Planted as lost-replica-begins-anew-as-itself.
        if group not in self.disowned:
            renewals.save_lost(self._disk, group)
            self.disowned.add(group)

    def adopt(
        self, group: RaftGroupId, incarnation: Incarnation, *, alone_from: Index = NEVER_ALONE
    ) -> None:
        """Be somebody else in `group` from now on, as was saved before."""
        self._note(group, renewals.Renewal(incarnation, alone_from))
        self.unreadable.discard(group)
        self.disowned.discard(group)
        self._own.add(self.in_group(group))
