"""What a replica is joined from: a core that decides, a log, and a state that entries are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from angarium.log.renewals import NEVER_ALONE

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.ids import Buffer, Index, RaftGroupId, Term
    from angarium.log.wal import Wal
    from angarium.raft import RaftNode
    from angarium.raft.messages import Entry
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.outbox import Outbox
    from angarium.replica.pacing import Pace
    from angarium.replica.storage import ReplicaStorage
    from angarium.replica.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What every replica has, whatever its state is: some its own, some the whole node's."""

    group: RaftGroupId
    raft: RaftNode
    storage: ReplicaStorage
    """Its log and its newest snapshot, as the core sees them."""
    wal: Wal
    """The node's; this group's log is one of many in it."""
    outbox: Outbox
    """The node's: what is to be sent, synced and done."""
    config: ReplicaConfig
    pace: Pace
    """The node's: what copies may take."""
    alone_from: Index = NEVER_ALONE
    """What the log says about who votes is void up to here (`OwnReplicaIds.alone_from`)."""


class State(Protocol):
    """What committed entries are for."""

    def understands(self, data: Buffer) -> bool:
        """Tell whether this release has a meaning for an entry's data."""

    def apply(self, entry: Entry) -> None:
        """Take one committed entry, in order, exactly once."""

    @property
    def is_occupied(self) -> bool:
        """True while it takes no entry, because of the last one or of all before."""

    @property
    def is_concluded(self) -> bool:
        """False while what the last entry brought is not to be seen yet."""

    def lead(self, term: Term) -> None:
        """This replica leads, and an entry of its own term is applied: it may serve."""

    def follow(self) -> None:
        """This replica does not lead any more."""

    def save(self) -> Generator[Work, None, bytes]:
        """Return the state as of now, after the work that makes its files durable."""

    def saved(self, index: Index) -> None:
        """Hear that the state as of `index` is durable."""

    def restore(self, data: Buffer, index: Index) -> None:
        """Replace the state by one that another replica saved at `index`."""
