"""A replica of group 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.replica.replica import Replica

if TYPE_CHECKING:
    from angarium.ids import GroupId, Micros
    from angarium.log.wal import Wal
    from angarium.machine.catalog import CatalogCommand
    from angarium.raft import RaftNode
    from angarium.replica.catalog import Catalog, CatalogReply
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.outbox import Outbox
    from angarium.replica.storage import ReplicaStorage


class CatalogReplica(Replica):
    """The catalog on one node. Its snapshots are small and travel in Raft's own messages."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        group: GroupId,
        raft: RaftNode,
        storage: ReplicaStorage,
        wal: Wal,
        outbox: Outbox,
        config: ReplicaConfig,
    ) -> None:
        super().__init__(
            group=group,
            raft=raft,
            storage=storage,
            state=catalog,
            wal=wal,
            outbox=outbox,
            config=config,
        )
        self.catalog = catalog
        catalog.attach(self)

    def submit(self, command: CatalogCommand, *, now: Micros, reply: CatalogReply) -> None:
        """Propose a catalog command; `reply` gets its outcome when it is applied."""
        self.catalog.submit(command, now=now, reply=reply)
