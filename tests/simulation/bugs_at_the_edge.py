"""Bugs planted where messages come in: what strangers could do if nobody looked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import visited

from angarium.replica import host, scrutiny
from angarium.replica.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId, ReplicaId
    from angarium.raft import RaftNode
    from angarium.raft.messages import Message
    from angarium.replica.peers import PeerMessage


@bug(seeds_max=20, run=visited)
def sender_not_compared() -> Iterator[Replaced]:
    """Whoever greeted may speak in the name of any other node."""

    def is_for_us(
        self: Host, group: RaftGroupId, message: Message | PeerMessage, via: ReplicaId
    ) -> bool:
        return message.to == self.own_ids.in_group(group)

    yield Replaced(Host, "_is_for_us", is_for_us)


@bug(seeds_max=20, run=visited)
def absurd_term_accepted() -> Iterator[Replaced]:
    """A term that no election can have reached is entered, and there is none after it."""

    def is_reachable(term: int, raft: RaftNode) -> bool:
        return True

    yield Replaced(scrutiny, "_is_reachable", is_reachable)


@bug(seeds_max=20, run=visited)
def commit_above_the_log_believed() -> Iterator[Replaced]:
    """A heartbeat that commits what this replica does not have reaches its core."""

    def no_objection(message: Message, raft: RaftNode) -> None:
        return None

    yield Replaced(scrutiny, "_objection_to_indexes", no_objection)


@bug(seeds_max=20, run=visited)
def nothing_objected_to() -> Iterator[Replaced]:
    """Whatever a member says reaches the core: words of any kind, for no term, out of order."""

    def objection_to(message: Message, raft: RaftNode) -> None:
        return None

    yield Replaced(host, "objection_to", objection_to)
