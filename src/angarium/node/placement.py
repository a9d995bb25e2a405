"""Making true what the catalog says: which replicas this node has, and who votes where.

Every node looks after two things. It has a replica of each partition the catalog gives it, and of
no other. In each Raft group it leads, it steers the membership towards the catalog's: a newcomer
listens until it has caught up, then votes from the same joint change on in which the replica that
it replaces leaves; readers only ever listen. A node whose data were wiped has another incarnation
and is a newcomer, too.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.ids import (
    CATALOG_GROUP,
    Index,
    NodeId,
    RaftGroupId,
    ReplicaId,
    is_witness,
    node_of,
)
from angarium.machine.catalog import Reassigned
from angarium.machine.catalog.balance import is_paced
from angarium.machine.catalog.regions import wish_for
from angarium.node.following import Following, could_lead
from angarium.node.recovering import Recovering
from angarium.node.steering import (
    catalog_voters,
    lacks_little,
    needs_steering,
    next_change,
    preferred_leader,
    reassignment,
)

if TYPE_CHECKING:
    from angarium.machine.catalog import CatalogApplied, CatalogMachine
    from angarium.machine.catalog.values import Partition
    from angarium.node.node import Node
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.replica import Replica

_log = logging.getLogger(__name__)

ROUND_S = 0.25
"""How often the node looks whether everything is as it should be; changes wake it at once."""

FRESH_ROUNDS = 20
FRESH_PAUSE_S = 0.02
"""How often, and how soon again, the preferred leader of a new partition campaigns: the other
founders may not have heard of the partition yet."""

FULL_ROUNDS = 8
"""After this many rounds everything is checked, even if the catalog has not changed."""

LEAD_S_MIN = 2.0
"""How long the preferred leader has to be there and up to date, without a break, before it is
handed a partition: one that comes and goes gets none. By the clock, for a busy catalog makes rounds
shorter."""


class Placement:
    """One node's share of keeping partitions where they belong."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._changed = asyncio.Event()
        self._could_lead: dict[RaftGroupId, float] = {}
        """Since when the preferred leader of a partition that this node leads could lead it."""
        self._recovering = Recovering(node)
        self.following = Following(node)
        self._seen = Index(0)
        self._rounds = 0
        self._reassigned_at = Index(0)
        """How far the catalog was when everything was last where it belongs."""
        self._fresh: dict[RaftGroupId, int] = {}
        """New partitions without a leader, and for how many rounds more to campaign for them."""

    async def run(self) -> None:
        """Look after this node's replicas until cancelled."""
        self._node.catalog.watchers.append(self._wake)
        self._node.catalog.watchers.append(self._node.admission.look_again)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ROUND_S):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._round()
            except AngariumError as error:
                _log.debug("placement waits: %s", error)

    def _wake(self, _: CatalogApplied | None) -> None:
        self._changed.set()

    async def hand_over(self) -> None:
        """Give every leadership away before this node stops."""
        host = self._node.host
        led = [one for one in (host.catalog, *host.replicas.values()) if one is not None]
        # A witness that leads is on its way out of office already.
        for replica in led:
            if replica.raft.is_leader:
                self._give_away(replica)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                # Leadership changes inside the cores, which tell nobody: look, briefly and often.
                while any(one.raft.is_leader and self._successor(one) for one in led):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    def _give_away(self, replica: Replica) -> None:
        """Let another voter lead: this node stops, or its disk is full."""
        target = self._successor(replica)
        if target is not None:
            self._transfer(replica, target)

    def _give_away_for_time(self, replica: Replica) -> bool:
        """Let another voter lead whose clock is right, if this node's is wrong; False if not."""
        if not self._node.time.is_wrong:
            return False
        target = self._successor(replica)
        # Nobody has to wait for one that is behind: what this leader stamps is bounded.
        if (
            target is None
            or not self._node.time.clocks.trusts(node_of(target))
            or not lacks_little(replica, target)
        ):
            return False
        self._transfer(replica, target)
        return True

    def _transfer(self, replica: Replica, target: ReplicaId) -> None:
        replica.raft.transfer_leader(target)
        replica.poke()
        self._node.wake()

    def _successor(self, replica: Replica) -> ReplicaId | None:
        """Return another voter that is reachable and has nearly everything.

        Rather one that is further behind than one whose clock is wrong; and of those that have
        nearly everything rather one of the same region.
        """
        best: tuple[bool, bool, int, ReplicaId] | None = None
        raft = replica.raft
        for voter in raft.conf_state.voters:
            if is_witness(voter) or voter == replica.id:
                continue
            if not self._node.is_here(replica.group, voter):
                continue
            is_right = self._node.time.clocks.trusts(node_of(voter))
            match = raft.match(voter) or 0
            is_near = lacks_little(replica, voter) and self._is_of_region(voter)
            rank = (is_right, is_near, match, voter)
            if best is None or rank[:3] > best[:3]:
                best = rank
        return best[3] if best is not None else None

    def _is_of_region(self, voter: ReplicaId) -> bool:
        nodes = self._node.catalog.machine.nodes.by_id
        mine, other = nodes.get(self._node.id), nodes.get(node_of(voter))
        return mine is not None and other is not None and mine.labels.region == other.labels.region

    # --- one round --------------------------------------------------------------------------

    async def _round(self) -> None:
        machine = self._node.catalog.machine
        self._rounds += 1
        self._know_nodes(machine)
        if not self._node.catalog.is_current:
            # After a restart the catalog may be older than the replicas here: what it does not
            # know yet is not what it does not want. Nothing is made, removed or steered by it.
            return
        self._recovering.look(machine)
        # Nothing to keep or know anew while the catalog stands still; look all the same at times.
        looks_at_all = machine.applied_index != self._seen or self._rounds % FULL_ROUNDS == 0
        if looks_at_all:
            self._seen = machine.applied_index
            await self._keep_all(machine)
        self._elect_first_leaders(machine)
        self._steer_catalog(machine)
        for group, replica in list(self._node.host.replicas.items()):
            partition = machine.topics.partitions.get(group)
            # Whether a group that rests has the members it should have changes with the catalog;
            # whether it has the right leader, with the clock.
            is_due = looks_at_all or not replica.is_resting or self._node.time.is_wrong
            if partition is not None and (
                is_due or partition.target or self._is_for_another(replica, partition)
            ):
                self._pace(machine, replica, partition)
                await self._steer(machine, partition)
        await self.following.look(machine)
        await self._reassign_all(machine)

    def _is_for_another(self, replica: Replica, partition: Partition) -> bool:
        """Tell whether this node leads a partition that another one is to lead."""
        return partition.replicas[0] != self._node.id and replica.raft.is_leader

    def _pace(
        self, machine: CatalogMachine, replica: PartitionReplica, partition: Partition
    ) -> None:
        """Let what comes here by a move come at its share of the pace that the catalog says."""
        bytes_per_s = machine.balance.bytes_per_s
        if not bytes_per_s or not is_paced(machine.balance, partition, machine.nodes):
            replica.pace_copy(None)
            return
        partitions = machine.topics.partitions.values()
        moving = sum(is_paced(machine.balance, one, machine.nodes) for one in partitions)
        replica.pace_copy(max(bytes_per_s * self._node.config.tick_ms // (1_000 * moving), 1))

    async def _keep_all(self, machine: CatalogMachine) -> None:
        host = self._node.host
        for partition in list(machine.topics.partitions.values()):
            await self._keep(partition)
        here = {*host.replicas, *host.witnesses, *host.repairs, *host.lost}
        for group in here - {CATALOG_GROUP}:
            if group not in machine.topics.partitions:
                self._remove(group)

    def _know_nodes(self, machine: CatalogMachine) -> None:
        node = self._node
        for one in machine.nodes.by_id.values():
            address = dict(one.addresses).get("wire")
            if one.id != node.id and address is not None:
                node.peers.know(one.id, address)
        if self._node.catalog.is_current:
            for gone in set(node.peers.ids) - set(machine.nodes.by_id):
                node.peers.forget(gone)

    async def _keep(self, partition: Partition) -> None:
        """Have a replica of `partition` if and only if the catalog says so."""
        host, me, group = self._node.host, self._node.id, partition.group
        has = any(group in one for one in (host.replicas, host.witnesses, host.repairs, host.lost))
        wanted = me in partition.holders
        is_witness_here = me == partition.witness
        if wanted and not has:
            if host.is_leaving(partition.group) or host.wal.is_full:
                return  # the files of its predecessor go first; and files need room
            ids = host.own_ids
            own = ids.as_witness(group) if is_witness_here else ids.as_full(group)
            if own in partition.founders:
                # Many partitions at once must not keep the loop from its heartbeats.
                await asyncio.to_thread(host.save_origin, partition.group, partition.founders)
                host.start_formed(partition.group)
            else:
                await asyncio.to_thread(host.prepare, group, a_witness=is_witness_here)
                host.join_group(group, a_witness=is_witness_here)
            self._node.wake()
            self._fresh[partition.group] = FRESH_ROUNDS
        elif has and (not wanted or is_witness_here != host.own_ids.is_witness(group)):
            replica = host.replicas.get(group) or host.witnesses.get(group)
            # It may still be needed as a voter until its leader has let it go. Of the other kind it
            # is another replica.
            if replica is not None and replica.id not in replica.raft.conf_state.voters:
                self._remove(partition.group)

    def _remove(self, group: RaftGroupId) -> None:
        self._node.host.remove_group(group)
        # Those who wait for records here learn that none will come.
        self._node.hearing.records_visible(group)
        self._node.wake()

    def _elect_first_leaders(self, machine: CatalogMachine) -> None:
        """Where this node is the preferred leader of a new partition, do not wait for a timeout."""
        for group, rounds in list(self._fresh.items()):
            self._fresh[group] = rounds - 1
            partition = machine.topics.partitions.get(group)
            leader = self._node.leader_of(group)
            if partition is None or leader is not None or rounds <= 0:
                del self._fresh[group]
            elif partition.replicas[0] == self._node.id and not self._node.time.is_wrong:
                self._node.campaign(group)
                self._changed_soon()

    def _changed_soon(self) -> None:
        asyncio.get_running_loop().call_later(FRESH_PAUSE_S, self._changed.set)

    # --- membership -------------------------------------------------------------------------

    def _id_of(self, machine: CatalogMachine, node: NodeId, group: RaftGroupId) -> ReplicaId | None:
        known = machine.nodes.by_id.get(node)
        return None if known is None else known.replica_in(group)

    async def _steer(self, machine: CatalogMachine, partition: Partition) -> None:
        replica = self._node.host.replicas.get(partition.group)
        if replica is None or not replica.may_serve:
            self._could_lead.pop(partition.group, None)
            return
        if self._node.host.wal.is_full:
            self._give_away(replica)
            return
        if self._give_away_for_time(replica):
            return
        target = partition.target or partition.replicas
        wanted = [self._id_of(machine, one, partition.group) for one in target]
        voters = {one for one in wanted if one is not None}
        if partition.witness in machine.nodes.by_id:
            voters.add(machine.nodes.by_id[partition.witness].witness_in(partition.group))
        listeners = [self._id_of(machine, one, partition.group) for one in partition.readers]
        learners = frozenset(one for one in listeners if one is not None) - voters
        if len(voters) < len(target) or not needs_steering(
            replica.raft.conf_state,
            voters=voters,
            learners=learners,
            is_resting=replica.is_resting,
            # A group that rests under another leader than the preferred one has yet to get it.
            is_moving=bool(partition.target) or partition.replicas[0] != self._node.id,
        ):
            return
        if self._propose(replica, voters, learners):
            return
        state = replica.raft.conf_state
        if partition.target and set(state.voters) == voters and not state.voters_outgoing:
            await self._node.catalog.submit(
                Reassigned(group=partition.group, replicas=partition.target)
            )
        elif not partition.target:
            self._prefer(replica, self._preferred(machine, partition))

    def _preferred(self, machine: CatalogMachine, partition: Partition) -> ReplicaId | None:
        regions = wish_for(machine.topics.by_id[partition.topic].settings, partition).regions
        nodes, group = machine.nodes.by_id, partition.group
        known = [one for one in partition.replicas if one in nodes]
        ranks = {
            one: regions.index(region) if region in regions else len(regions)
            for one, region in ((one, nodes[one].labels.region) for one in known)
        }

        def is_here(node: NodeId) -> bool:
            return self._node.is_here(group, nodes[node].replica_in(group))

        if self._node.id not in ranks or known != list(partition.replicas):
            return self._id_of(machine, partition.replicas[0], group)
        chosen = preferred_leader(partition.replicas, ranks, leader=self._node.id, is_here=is_here)
        return self._id_of(machine, chosen, group)

    def _prefer(self, replica: Replica, preferred: ReplicaId | None) -> None:
        """Hand over to the preferred leader once it is there and up to date."""
        if preferred is None or preferred == replica.id:
            return
        if not could_lead(self._node, replica, preferred):
            self._could_lead.pop(replica.group, None)
            return
        now = asyncio.get_running_loop().time()
        if now - self._could_lead.setdefault(replica.group, now) >= LEAD_S_MIN:
            del self._could_lead[replica.group]
            self._transfer(replica, preferred)

    def _steer_catalog(self, machine: CatalogMachine) -> None:
        """Let a few nodes, of different hosts, vote on the catalog, and all others listen."""
        replica = self._node.host.catalog
        if replica is None or not replica.may_serve or not machine.nodes.by_id:
            return
        if self._node.host.wal.is_full:
            self._give_away(replica)
            return
        if self._give_away_for_time(replica):
            return
        nodes = machine.nodes.by_id.values()
        few = catalog_voters(nodes, voters_max=self._node.config.catalog_voters)
        voters = {one.replica_in(CATALOG_GROUP) for one in few}
        others = frozenset(one.replica_in(CATALOG_GROUP) for one in nodes) - voters
        self._propose(replica, voters, others)

    def _propose(
        self, replica: Replica, voters: set[ReplicaId], learners: frozenset[ReplicaId]
    ) -> bool:
        """Take one step towards a membership; False if nothing is left to do."""
        state = replica.raft.conf_state
        change = next_change(
            state,
            voters=voters,
            learners=learners,
            # Witnesses may have forgotten more than was settled by then.
            settled_index=max(replica.settled_index, replica.raft.forgotten_index),
            match=replica.raft.match,
            is_here=lambda one: one == replica.id or self._node.is_here(replica.group, one),
        )
        if change is None:
            return bool(state.voters_outgoing)
        with suppress(AngariumError):
            replica.propose_conf_change(change)
            replica.poke()
            self._node.wake()
        return True

    # --- where partitions belong ------------------------------------------------------------

    async def _reassign_all(self, machine: CatalogMachine) -> None:
        """As the catalog's leader, move what is on nodes that are being drained, or out of place.

        A home may have more hosts than it had, a region its first node or no node any more.
        """
        if self._node.leader_of(CATALOG_GROUP) != self._node.id:
            return
        draining = {one.id for one in machine.nodes.by_id.values() if one.draining}
        if not draining and machine.applied_index == self._reassigned_at:
            return
        nodes, topics = machine.nodes.placeable(), machine.topics
        looked_at = machine.applied_index
        for partition in list(topics.partitions.values()):
            if partition.group not in topics.partitions:
                continue  # deleted while others were moved
            wish = reassignment(topics, partition, nodes, draining)
            if wish is not None:
                with suppress(AngariumError):
                    await self._node.catalog.submit(wish)
        # Its own moves bring it here again.
        self._reassigned_at = looked_at
