"""Recovering partitions behind the contract: looked at by asking all nodes, decided by the catalog.

Anybody may be asked, as long as the catalog has a majority. What is lost by it is said before, and
the code that confirms it is bound to who goes on, with which log, and without whom: if any of that
is different when the code comes, nothing is done. `node.survivors` decides, without looking.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from angarium.api.recovery import GroupLeft, LeftReplica, LostReplica, RecoveryInfo
from angarium.errors import AngariumError, InvalidArgument, NotLeader, PreconditionFailed
from angarium.ids import CATALOG_GROUP, Offset, full_id, is_witness, node_of, replica_id
from angarium.log.folder_identity import draw_incarnation
from angarium.machine.catalog import PartitionRecover
from angarium.node import survivors
from angarium.node.release import RECOVER_LEVEL
from angarium.node.survivors import Survivor, SurvivorAnswer
from angarium.wire.operations import Operation, SurvivorHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import NodeId, RaftGroupId, ReplicaId
    from angarium.machine.catalog import Partition
    from angarium.replica.witness import WitnessReplica
    from angarium.service.own_node import MemberNode

ANSWER_S_MAX: Final = 2.0
"""How long another node may take to say what it has. One that is up and does not say it counts as
one that may come back."""

GROUPS_TOLD_MAX: Final = 100
"""Groups in one answer."""

CATALOG_LOST: Final = (
    "the catalog itself has no majority, and without it nothing may decide which replicas are void:"
    " bring its voters back, or, if their disks are gone for good, recover the catalog first, with"
    " `angarium cluster recover-catalog` (docs/guides/lost-majority.md)"
)


class Recovering:
    """One node's share of it; implements `api.recovery.RecoveryBroker`."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node

    # --- the contract -------------------------------------------------------------------------

    async def describe_recovery(self, topic: str, partition: int) -> RecoveryInfo:
        """Return what would be done now, and the code that confirms it."""
        await self._catch_up()
        info, _ = await self._looked_at(topic, partition)
        return info

    async def recover_partition(self, topic: str, partition: int, code: str) -> RecoveryInfo:
        """Go on with the best replica that is left, and without all others for ever."""
        level = self._node.catalog.level
        if level < RECOVER_LEVEL:
            raise PreconditionFailed(
                f"to recover a partition needs feature level {RECOVER_LEVEL}, the cluster works at"
                f" {level}: upgrade every node, then `angarium cluster raise-level`"
            )
        await self._catch_up()
        info, command = await self._looked_at(topic, partition)
        if info.objection or command is None:
            raise PreconditionFailed(info.objection)
        if code != info.code:
            raise InvalidArgument(
                "the code confirms something else: what would be done has changed since, or the "
                "code is of another partition. Look again without it"
            )
        await self._node.catalog.submit(command)
        return RecoveryInfo(
            topic=topic,
            partition=partition,
            source=info.source,
            last_term=info.last_term,
            last_index=info.last_index,
            end_offset=info.end_offset,
            lost=info.lost,
            is_done=True,
        )

    # --- looking ------------------------------------------------------------------------------

    def seen_here(self, group: RaftGroupId) -> SurvivorAnswer:
        """Return what this node's own replica of a partition is, for whoever decides."""
        node = self._node
        replica = node.replicas.get(group)
        witness = node.replicas.witness(group)
        if witness is not None:
            return SurvivorAnswer(survivor=_seen_witness(node, witness))
        if replica is None or not replica.last_index:
            return SurvivorAnswer(is_mending=node.replicas.is_mending(group))
        raft, state = replica.raft, replica.raft.conf_state
        groups = list(replica.partition.machine.groups.by_name.values())[:GROUPS_TOLD_MAX]
        return SurvivorAnswer(
            survivor=Survivor(
                node=node.id,
                replica=raft.id,
                last_term=replica.storage.term(raft.last_index),
                last_index=raft.last_index,
                commit=raft.commit,
                told_commit=replica.told_commit,
                end_offset=replica.end_offset,
                voters=tuple(dict.fromkeys((*state.voters, *state.voters_outgoing))),
                listeners=(*state.learners, *state.learners_next),
                halted=replica.halted,
                leads=replica.may_serve,
                silent_ms=node.quorum.silent_ms(),
                groups=tuple((one.name, Offset(one.floor)) for one in groups),
            )
        )

    async def _catch_up(self) -> None:
        try:
            await self._node.catalog.catch_up()
        except NotLeader:
            if self._node.quorum.trouble(CATALOG_GROUP):
                raise PreconditionFailed(CATALOG_LOST) from None
            raise

    async def _looked_at(
        self, topic: str, number: int
    ) -> tuple[RecoveryInfo, PartitionRecover | None]:
        partition = self._node.catalog.partition(topic, number)
        asked = dict.fromkeys(partition.holders)
        answers = await asyncio.gather(*(self._ask(one, partition.group) for one in asked))
        found = [one.survivor for one in answers if one is not None and one.survivor is not None]
        name = self._node.catalog.name_of(partition.group)
        source = survivors.best(found)
        if source is None:
            info = RecoveryInfo(
                topic=topic,
                partition=number,
                left=tuple(map(_left, found)),
                objection=f"of {name} no replica is left to go on with: restore a backup, or delete"
                " the topic",
            )
            return info, None
        objection = self._unanswered(asked, answers) or survivors.objection(
            source, found, wait_ms=round(1_000 * self._node.config.recover_after_s), name=name
        )
        return self._told(topic, partition, source, found, objection)

    async def _ask(self, node: NodeId, group: RaftGroupId) -> SurvivorAnswer | None:
        """Return what a node says; None if it does not."""
        if node == self._node.id:
            return self.seen_here(group)
        try:
            frame = await self._node.peers.request(
                node, Operation.SURVIVOR, SurvivorHeader(group), timeout_s=ANSWER_S_MAX
            )
            return frame.unpack(SurvivorAnswer)
        except AngariumError:
            return None

    def _unanswered(
        self, asked: Sequence[NodeId] | dict[NodeId, None], answers: Sequence[SurvivorAnswer | None]
    ) -> str:
        """Say who is there and may still have a say; empty if nobody is."""
        for node, answer in zip(asked, answers, strict=True):
            if answer is None and self._node.peers.is_up(node):
                return f"node {node} is there and does not say what it has: ask again"
            if answer is not None and answer.is_mending:
                return f"node {node} is mending its replica, and may come back: ask again"
        return ""

    def _told(
        self,
        topic: str,
        partition: Partition,
        source: Survivor,
        found: Sequence[Survivor],
        objection: str | None,
    ) -> tuple[RecoveryInfo, PartitionRecover]:
        catalog = self._node.catalog
        missing = survivors.lost(source, found)
        times = catalog.times_recovered(partition.group)
        code = survivors.confirmation(catalog.cluster, partition.group, times, source, missing)
        lost = tuple(self._lost(one, found) for one in missing)
        info = RecoveryInfo(
            topic=topic,
            partition=partition.number,
            source=source.node,
            last_term=source.last_term,
            last_index=source.last_index,
            commit=source.commit,
            end_offset=source.end_offset,
            behind=max(0, source.told_commit - source.last_index),
            lost=lost,
            left=tuple(map(_left, found)),
            groups=tuple(GroupLeft(name=name, position=at) for name, at in source.groups),
            may_lose=(*_may_lose(source, lost), *_only_witnessed(source, found)),
            objection=objection or "",
            code="" if objection else code,
        )
        return info, self._command(partition, source, found, missing, times)

    def _lost(self, replica: ReplicaId, found: Sequence[Survivor]) -> LostReplica:
        node = node_of(replica)
        silent = [one.silent_ms[node] for one in found if node in one.silent_ms]
        member = self._node.catalog.member(node)
        address = "" if member is None else dict(member.addresses).get("wire", "")
        return LostReplica(node=node, address=address, silent_ms=min(silent, default=None))

    def _command(
        self,
        partition: Partition,
        source: Survivor,
        found: Sequence[Survivor],
        missing: Sequence[ReplicaId],
        times: int,
    ) -> PartitionRecover:
        known = self._node.catalog
        members = {one.id: one.replica_in(partition.group) for one in known.members()}
        # Whoever is to have one may have been taken in by a majority that is gone.
        known_ids = (
            *source.voters,
            *source.listeners,
            *(one.replica for one in found),
            *(members[one] for one in partition.holders if one in members),
        )
        # A witness's node is known to the catalog by the id of a full replica: both are void.
        void = dict.fromkeys((*known_ids, *map(full_id, known_ids)))
        fresh = tuple(
            (node, draw_incarnation(secrets.randbits))
            for node in dict.fromkeys(map(node_of, void))
            if node in members
        )
        assert all(replica_id(node, one) not in void for node, one in fresh)
        gone = tuple(
            dict.fromkeys(one for one in map(node_of, missing) if not self._node.peers.is_up(one))
        )
        return PartitionRecover(
            group=partition.group,
            source=source.node,
            void=tuple(void),
            fresh=fresh,
            gone=gone,
            times=times,
        )


def _seen_witness(node: MemberNode, witness: WitnessReplica) -> Survivor:
    """Say that a witness is there: it counts for a majority, and nobody goes on with it."""
    raft, state = witness.raft, witness.raft.conf_state
    return Survivor(
        node=node.id,
        replica=raft.id,
        last_term=raft.last_term,
        last_index=raft.last_index,
        commit=raft.commit,
        told_commit=witness.told_commit,
        end_offset=Offset(0),
        voters=tuple(dict.fromkeys((*state.voters, *state.voters_outgoing))),
        listeners=(*state.learners, *state.learners_next),
        halted=witness.halted,
        silent_ms=node.quorum.silent_ms(),
    )


def _only_witnessed(source: Survivor, found: Sequence[Survivor]) -> tuple[str, ...]:
    own = source.last_term, source.last_index
    ahead = [
        one
        for one in found
        if is_witness(one.replica) and not one.halted and (one.last_term, one.last_index) > own
    ]
    return tuple(
        f"The witness on node {one.node} has entries up to {one.last_index} and no records before "
        "them: nothing can go on with it, and they are lost as well, unless a lost node comes back."
        for one in ahead
    )


def _left(one: Survivor) -> LeftReplica:
    return LeftReplica(
        node=one.node, last_term=one.last_term, last_index=one.last_index, halted=one.halted
    )


def _may_lose(source: Survivor, lost: Sequence[LostReplica]) -> tuple[str, ...]:
    away = [one.silent_ms for one in lost if one.silent_ms is not None]
    when = f", {max(away) // 1_000} s ago," if away else ""
    said = [
        "Lost is whatever was acknowledged with the lost replicas and had not come to node "
        f"{source.node} when it last heard of them{when} and everything they may have acknowledged"
        f" since. The records of node {source.node} end at offset {source.end_offset}, and what it"
        f" has beyond entry {source.commit}, up to {source.last_index}, is kept.",
        "Offsets behind that are given anew: whoever has read or noted one of the lost records has"
        " to forget it.",
        "The lost nodes must be off, or out of reach for clients: as long as they run and reach "
        "each other, and not the rest of the cluster, they may go on acknowledging.",
    ]
    behind = source.told_commit - source.last_index
    if behind > 0:
        said.insert(1, f"At least {behind} entries are lost: a leader has told of them.")
    if source.groups:
        said.append(
            f"{len(source.groups)} consumer groups go back to where node {source.node} knows them: "
            "what they settled since is handed out again."
        )
    return tuple(said)
