"""What becomes of replicas that damage has taken: they begin anew, one by one, from the others.

A replica whose files no longer tell what it promised is silent (`Host.lost`), and only that one.
Once its group's leader vouches that a majority of the other replicas has everything, what is left
of it is given up: it gets an incarnation of its own, the catalog hears of it with this node's
entry, and the leader takes it in like any newcomer. Where nobody else has the records, nothing is
given up: the partition is said to be damaged, with what to do.

All damage is told here: in the log, in the reasons why the node is not ready, and in numbers.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Final

from angarium.api import ClusterStatus
from angarium.errors import AngariumError
from angarium.ids import CATALOG_GROUP
from angarium.log.folder_identity import draw_incarnation
from angarium.node.steering import voter_count
from angarium.replica.damage import Fate
from angarium.replica.fullness import is_member
from angarium.wire.operations import Operation, PartitionsAnswer, PartitionsHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Incarnation, NodeId, RaftGroupId
    from angarium.machine.catalog.values import Partition
    from angarium.node.node import Node

LOOK_S: Final = 0.5
"""How often the node looks whether a lost replica can begin anew."""

ANSWER_S_MAX: Final = 1.0
"""How long another node may take to say what it has."""

_BACKUP: Final = "put the data folder of this node back from a backup"

_NOBODY_KNOWN: Final = (
    "; with the catalog it has lost their addresses: if none of them finds it, start it with "
    "--join and where they are"
)

_log = logging.getLogger(__name__)


class Healing:
    """One node's damaged replicas."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._drawn: dict[RaftGroupId, Incarnation] = {}
        self._was_current = False
        """Whether the catalog was current here when it was found damaged."""
        self._had_only_vote = False
        """Whether this node alone could say what the catalog is, as far as the others know."""

    # --- telling ------------------------------------------------------------------------------

    def hear(self, fate: Fate, group: RaftGroupId, what: str) -> None:
        """Say in the log what happened to a replica."""
        level = logging.INFO if fate is Fate.MENDED else logging.WARNING
        if fate in (Fate.LOST, Fate.CONTRADICTED):
            level = logging.ERROR
        if group == CATALOG_GROUP:
            self._hear_of_catalog(fate)
        extra = {"partition": self._name(group), "what": what}
        _log.log(level, _NEWS[fate], extra=extra)

    def _hear_of_catalog(self, fate: Fate) -> None:
        catalog = self._node.catalog
        if fate in (Fate.FOUND, Fate.LOST):
            # Until there is another copy, or this one was opened again and has caught up, nothing
            # is made or removed by it.
            self._was_current = self._was_current or catalog.is_current
            catalog.is_current = False
        elif fate is Fate.MENDED and self._was_current:
            # At a start the node is about to introduce itself. Found while it runs, nothing else
            # would ask the leader how far the catalog is.
            self._was_current = False
            catalog.introduce_again()

    def reasons(self) -> Iterator[str]:
        """Say of every replica that is damaged what is being done, or is to be done, about it."""
        host = self._node.host
        for group, damage in list(host.lost.items()):
            yield self._lost(group, str(damage))
        for group in list(host.replicas):
            if self._is_gone(group):
                yield self._gone(group)
        for group in list(host.repairs):
            yield (
                f"{self._name(group)} is damaged on this node (its log): what is missing is "
                f"fetched from other nodes. If there are none, {_BACKUP}"
            )
        for group, replica in list(host.replicas.items()):
            for part in replica.partition.log.damage:
                records = f"records {part.from_offset} to {part.to_offset - 1}"
                where = f"{self._name(group)} is damaged on this node ({records})"
                if self._is_alone(group):
                    yield f"{where}, and it has no other replica: to read them, {_BACKUP}"
                else:
                    yield f"{where}: they are being fetched from its other replicas"

    def only_replica_lost(self, group: RaftGroupId) -> str:
        """Say what to do if the one replica of a partition was here and is lost; else empty."""
        host = self._node.host
        if self._is_gone(group):
            return self._gone(group)
        damage = host.lost.get(group)
        if damage is not None and self._is_alone(group):
            return self._lost(group, str(damage))
        if group in host.repairs and self._is_alone(group):
            return self._lost(group, "its log has unreadable entries")
        return ""

    def _lost(self, group: RaftGroupId, why: str) -> str:
        where = f"{self._name(group)} is damaged on this node ({why})"
        if group in self._node.host.lost and not self._node.host.may_renew(group):
            return where  # it contradicts its leader as well, and why says what to do
        if group == CATALOG_GROUP and self._had_only_vote:
            return (
                f"{where}, and this node alone had a vote on it: the other node only listens, and "
                "may lack what was decided last, so nothing is copied from it. Nothing can be "
                f"served here until you {_BACKUP}"
            )
        if group == CATALOG_GROUP:
            lost = "" if self._node.peers.ids else _NOBODY_KNOWN
            return (
                f"{where}: nothing can be served until it is copied from the other nodes, as soon "
                f"as a majority of them can be reached{lost}. If this is the only node, {_BACKUP}"
            )
        if self._is_alone(group):
            return (
                f"{where}, and it has no other replica: it can be neither read nor written. "
                f"To have its records again, {_BACKUP}; to go on without them, delete the topic"
            )
        if self._is_one_of_two(group):
            return (
                f"{where}, and its other replica alone is no majority: it can be read there, and "
                f"not written. To go on with it, {_BACKUP}; or copy its records to another topic "
                "and delete it"
            )
        return f"{where}: it is copied anew once a majority of its other replicas is there"

    def _gone(self, group: RaftGroupId) -> str:
        return (
            f"{self._name(group)} had its only replica on this node, whose disk was replaced: its "
            f"records are gone. To have them again, {_BACKUP}; to go on without them, delete the "
            "topic"
        )

    def _is_gone(self, group: RaftGroupId) -> bool:
        """Tell whether a replica here is empty, and nobody will ever take it in."""
        replica = self._node.host.replicas.get(group)
        return replica is not None and not is_member(replica.raft) and self._is_alone(group)

    def _name(self, group: RaftGroupId) -> str:
        return self._node.catalog.name_of(group)

    def _is_alone(self, group: RaftGroupId) -> bool:
        partition = self._partition(group)
        return partition is not None and {*partition.voters, *partition.target} == {self._node.id}

    def _is_one_of_two(self, group: RaftGroupId) -> bool:
        partition = self._partition(group)
        votes = set() if partition is None else {*partition.voters, *partition.target}
        return len(votes) == 2 and self._node.id in votes

    def _partition(self, group: RaftGroupId) -> Partition | None:
        catalog = self._node.host.catalog
        return None if catalog is None else catalog.catalog.machine.topics.partitions.get(group)

    # --- beginning anew -----------------------------------------------------------------------

    async def run(self) -> None:
        """Let lost replicas begin anew as soon as that costs nothing."""
        host = self._node.host
        while True:
            for group in list(host.lost):
                if host.may_renew(group) and await self._others_have(group):
                    await self._renew(group)
            if host.catalog is None and CATALOG_GROUP not in {*host.lost, *host.repairs}:
                await self._join_catalog()
            await asyncio.sleep(LOOK_S)

    async def _renew(self, group: RaftGroupId) -> None:
        host = self._node.host
        drawn = self._drawn.get(group)
        if drawn is None:
            drawn = draw_incarnation(secrets.randbits)
            await asyncio.to_thread(host.own_ids.save, group, drawn)
            self._drawn[group] = drawn
        if group not in host.lost:
            return  # it was taken away from this node meanwhile
        host.renew(group, drawn)
        if group not in host.lost:
            del self._drawn[group]
            _log.warning("starts again, from its peers", extra={"partition": self._name(group)})
            self._node.catalog.introduce_again()
        self._node.wake()

    async def _join_catalog(self) -> None:
        host = self._node.host
        if not host.is_leaving(CATALOG_GROUP):
            host.join_group(CATALOG_GROUP)
            self._node.wake()

    async def _others_have(self, group: RaftGroupId) -> bool:
        """Ask whether a leader elsewhere vouches for a majority without this node's replica."""
        if group == CATALOG_GROUP:
            return await self._others_have_catalog()
        if not self._node.catalog.is_current:
            return False
        partition = self._partition(group)
        if partition is None or self._node.id not in partition.holders:
            self._node.host.remove_group(group)  # nobody wants it here any more
            self._node.wake()
            return False
        for peer in self._reachable(partition.replicas):
            try:
                frame = await self._node.peers.request(
                    peer, Operation.PARTITIONS, PartitionsHeader((group,)), timeout_s=ANSWER_S_MAX
                )
                seen = frame.read_large(PartitionsAnswer).seen
            except AngariumError:
                continue
            for one in seen:
                if self._is_majority(one.in_sync, len(partition.voters)):
                    return True
        return False

    async def _others_have_catalog(self) -> bool:
        for peer in self._reachable(self._node.peers.ids):
            try:
                frame = await self._node.peers.request(
                    peer, Operation.CLUSTER_STATUS, timeout_s=ANSWER_S_MAX
                )
                status = frame.read(ClusterStatus)
            except AngariumError:
                continue
            votes = voter_count(len(status.nodes), voters_max=self._node.config.catalog_voters)
            if self._is_majority(status.catalog_in_sync, votes):
                return True
            # By the order in which `steering.electors` has them, whatever their regions.
            first = min(status.nodes, key=lambda one: (one.draining, one.id), default=None)
            self._had_only_vote = votes == 1 and first is not None and first.id == self._node.id
        return False

    def _reachable(self, nodes: list[NodeId] | tuple[NodeId, ...]) -> list[NodeId]:
        peers = self._node.peers
        return [one for one in nodes if one != self._node.id and peers.is_up(one)]

    def _is_majority(self, in_sync: tuple[NodeId, ...] | None, count: int) -> bool:
        others = [one for one in in_sync or () if one != self._node.id]
        return len(others) > count // 2


_NEWS: Final = {
    Fate.FOUND: "found damage; it is mended from a peer",
    Fate.MENDED: "mended damage from a peer",
    Fate.LOST: "lost a replica to damage",
    Fate.CONTRADICTED: "committed entries contradict each other",
}
