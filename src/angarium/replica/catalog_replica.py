"""A replica of group 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import CorruptData
from angarium.machine.catalog import CatalogMachine
from angarium.raft.messages import MessageKind
from angarium.replica.replica import Replica
from angarium.replica.scrutiny import Objection

if TYPE_CHECKING:
    from angarium.ids import Micros, ReplicaId
    from angarium.machine.catalog import CatalogCommand
    from angarium.raft.messages import Message
    from angarium.replica.catalog import Catalog, CatalogReply
    from angarium.replica.parts import Parts


class CatalogReplica(Replica):
    """The catalog on one node. Its snapshots are small and travel in Raft's own messages."""

    def __init__(self, parts: Parts, catalog: Catalog) -> None:
        super().__init__(parts, catalog)
        self.catalog = catalog
        self._waited: dict[ReplicaId, int] = {}
        """Ticks since a snapshot was sent to each peer that has not answered yet."""
        catalog.attach(self)

    def tick(self) -> None:
        """Let one tick pass; send a snapshot again that was not answered for long."""
        super().tick()
        waiting = self.raft.snapshot_receivers() if self.raft.is_leader else ()
        self._waited = {peer: self._waited.get(peer, 0) + 1 for peer in waiting}
        for peer, ticks in self._waited.items():
            if ticks > self._config.transfer_patience_ticks:
                self.raft.report_snapshot(peer, ok=False)

    def receive(self, message: Message) -> None:
        """Take a Raft message; no snapshot while one of our own is being written."""
        if message.kind is MessageKind.SNAPSHOT and self.is_busy:
            return  # as if it had been lost on the way
        if message.snapshot is not None:
            try:
                CatalogMachine().restore(message.snapshot.data)
            except CorruptData as unreadable:
                what = f"a snapshot of the catalog: {unreadable}"
                self._outbox.refusals.note(Objection.CONTENT, what)
                return
        super().receive(message)

    def _is_told_at_once(self, member: ReplicaId) -> bool:
        """Every node answers from its own catalog, and should know at once what is in it."""
        del member
        return True

    def submit(self, command: CatalogCommand, *, now: Micros, reply: CatalogReply) -> None:
        """Propose a catalog command; `reply` gets its outcome when it is applied."""
        self.catalog.submit(command, now=now, reply=reply)
