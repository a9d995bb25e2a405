"""Why a partition has no leader: an election, or a majority that is gone.

An election passes within a second or two, and is called one. Where fewer than a majority of the
replicas can be reached for longer than that, no election will help, and the caller is told how
many there are, of which partition, and which nodes are missing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData, NotLeader
from angarium.ids import CATALOG_GROUP, node_of
from angarium.machine.catalog.topics import OWN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.errors import AngariumError
    from angarium.ids import NodeId, RaftGroupId
    from angarium.node.node import Node

ELECTION_S_MAX: Final = 2.0
"""For so long a partition whose majority is out of reach may just be electing: links break before
nodes have restarted."""

TOPICS_NAMED_MAX: Final = 5
"""So many topics are named where many partitions lack the same nodes."""


_LAST_RESORT: Final = (
    ". If their disks are gone for good, `angarium cluster recover-catalog` goes on with what is "
    "left (docs/guides/lost-majority.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shortage:
    """What partitions have in common that lack the same nodes."""

    of_catalog: bool
    voters: int
    missing: tuple[NodeId, ...]
    is_old: bool = False
    """Of the catalog: whether they have been away for so long that they may be gone for good."""


class Quorum:
    """What one node knows about majorities."""

    def __init__(self, node: Node, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._node = node
        self._clock = clock
        self._down_since: dict[NodeId, float] = {}
        self._started_at = self._clock()

    def link_changed(self, node: NodeId) -> None:
        """Hear that the way to a node was lost, or is there again."""
        if self._node.peers.is_up(node):
            self._down_since.pop(node, None)
        else:
            self._down_since.setdefault(node, self._clock())

    def fell_silent(self, node: NodeId, silent_s: float) -> None:
        """Note that nothing has come from a node for so long: that counts as time it was away."""
        self._down_since.setdefault(node, self._clock() - silent_s)

    def silent_ms(self) -> dict[NodeId, int]:
        """Return the nodes that cannot be reached, and for how long that has been so."""
        node, now = self._node, self._clock()
        return {
            one.id: round(1_000 * (now - self._missing_since(one.id)))
            for one in node.catalog.members()
            if one.id != node.id and not node.peers.is_up(one.id)
        }

    def no_leader(self, group: RaftGroupId) -> AngariumError:
        """Return the error for a caller that needs a leader of a partition that has none."""
        damage = self._node.healing.only_replica_lost(group)
        if damage:
            return CorruptData(damage)
        trouble = self.trouble(group)
        if trouble:
            return NotLeader(trouble)
        name = self._node.catalog.name_of(group)
        return NotLeader(f"{name} is electing a leader; try again in a moment")

    def check(self, group: RaftGroupId) -> None:
        """Raise `NotLeader` if a majority of a partition that this node leads is unreachable.

        Raft has a leader step down for that, but only some time after it was used again.
        """
        if self._down_since and (trouble := self.trouble(group)):
            raise NotLeader(trouble)

    def lasting(self, group: RaftGroupId) -> str:
        """Say why a partition has no leader, and will have none; empty for an election."""
        return self._node.healing.only_replica_lost(group) or self.trouble(group)

    def trouble(self, group: RaftGroupId) -> str:
        """Say how many replicas are there if they are too few; empty if not, or not for long."""
        shortage = self._shortage(group)
        return "" if shortage is None else self._told(shortage, [group])

    def reasons(self) -> list[str]:
        """Return the same for everything this node has a share in and nobody leads.

        Of partitions of which it only has a copy to read from it goes on serving what it has: a
        region that is lost must not take the nodes of the others out.

        Partitions that miss the same nodes share a sentence: where two of three machines are gone,
        all of them do.
        """
        host = self._node.host
        replicas = [*([host.catalog] if host.catalog else []), *host.replicas.values()]
        alike: dict[_Shortage, list[RaftGroupId]] = {}
        for group in (one.group for one in replicas if self._has_a_vote(one.group)):
            leader = self._node.leader_of(group)
            # Raft tells a leader that it has lost its majority only once the group is used again.
            if leader != self._node.id and self.is_led(group):
                continue
            shortage = self._shortage(group)
            if shortage is not None:
                alike.setdefault(shortage, []).append(group)
        return [self._told(shortage, groups) for shortage, groups in alike.items()]

    def _has_a_vote(self, group: RaftGroupId) -> bool:
        if group == CATALOG_GROUP:
            return True
        partition = self._node.catalog.machine.topics.partitions.get(group)
        votes = () if partition is None else (*partition.voters, *partition.target)
        return partition is None or self._node.id in votes

    def is_led(self, group: RaftGroupId) -> bool:
        """Tell whether somebody leads who can be reached.

        A replica that only listens never looks for another leader: it would name the last one, dead
        or alive, for ever.
        """
        leader = self._node.leader_of(group)
        return leader is not None and (leader == self._node.id or self._node.peers.is_up(leader))

    def _shortage(self, group: RaftGroupId) -> _Shortage | None:
        voters = self._voters(group)
        missing = [one for one in voters if not self._is_here(group, one)]
        majority = len(voters) // 2 + 1
        if not voters or len(voters) - len(missing) >= majority:
            return None
        lost_at = sorted(map(self._missing_since, missing))[len(voters) - majority]
        if self._clock() - lost_at < ELECTION_S_MAX:
            return None
        of_catalog = group == CATALOG_GROUP
        away_s = self._clock() - lost_at
        return _Shortage(
            of_catalog=of_catalog,
            voters=len(voters),
            missing=tuple(sorted(missing)),
            is_old=of_catalog and away_s >= self._node.config.recover_after_s,
        )

    def _told(self, shortage: _Shortage, groups: Sequence[RaftGroupId]) -> str:
        there = shortage.voters - len(shortage.missing)
        if shortage.of_catalog:
            has = f"the catalog has {there} of {shortage.voters} voters"
            cannot = "topics, groups and nodes cannot be changed, nor new producers let in,"
        elif len(groups) == 1:
            name = self._node.catalog.name_of(groups[0])
            has = f"{name} has {there} of {shortage.voters} replicas"
            cannot = "it cannot take records"
        else:
            has = f"{self._summed_up(groups)} have {there} of {shortage.voters} replicas"
            cannot = "they cannot take records"
        sentence = (
            f"{has}: {cannot} until {shortage.voters // 2 + 1} are there; "
            f"missing: {', '.join(map(self._called, shortage.missing))}"
        )
        if shortage.is_old and shortage.voters > 1:
            sentence += _LAST_RESORT
        if shortage.of_catalog and shortage.voters == 1:
            sentence += (
                ", which alone has a vote. If its disk is gone, put its data folder back from a "
                "backup: the others only listen, and may lack what was decided last"
            )
        return sentence

    def _summed_up(self, groups: Sequence[RaftGroupId]) -> str:
        topics = self._node.catalog.machine.topics
        found = {topics.by_id[topics.partitions[one].topic].name for one in groups}
        # People's own topics first: they know them.
        named = sorted(found, key=lambda name: (name.startswith(OWN_PREFIX), name))
        shown = ", ".join(named[:TOPICS_NAMED_MAX])
        more = len(named) - TOPICS_NAMED_MAX
        return f"{len(groups)} partitions (of {shown}{f' and {more} more' if more > 0 else ''})"

    def _called(self, node: NodeId) -> str:
        address = self._node.peers.address_of(node)
        return f"node {node} ({address})" if address else f"node {node}"

    def _voters(self, group: RaftGroupId) -> Sequence[NodeId]:
        node = self._node
        catalog = node.host.catalog
        if catalog is None:
            return ()
        if group == CATALOG_GROUP:
            return list(map(node_of, catalog.raft.conf_state.voters))
        if group in node.host.replicas and node.leader_of(group) == node.id:
            # Its leader knows who votes; the catalog says who is to.
            return list(map(node_of, node.host.replicas[group].raft.conf_state.voters))
        partition = node.catalog.machine.topics.partitions.get(group)
        return () if partition is None else partition.voters

    def _is_here(self, group: RaftGroupId, voter: NodeId) -> bool:
        node = self._node
        if voter != node.id:
            return node.peers.is_up(voter)
        host = node.host
        return group == CATALOG_GROUP or group in host.replicas or group in host.witnesses

    def _missing_since(self, voter: NodeId) -> float:
        return self._down_since.get(voter, self._started_at)
