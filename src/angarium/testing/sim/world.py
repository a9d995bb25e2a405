"""One run: a cluster, its clients, its faults, from one seed.

A run forms a cluster, lets faults strike while clients work, recovers (`recovery`), reads what is
left (`final_logs`) and hands the history to the checkers. `settings` decides how large it is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from angarium.ids import Index, Micros, NodeId, RaftGroupId, ReplicaId, Term, node_of
from angarium.machine.catalog import CatalogMachine, Form, encode
from angarium.testing.checkers import Violation, violations
from angarium.testing.history import History, Publish, Result
from angarium.testing.sim.clients import Producer, Reader
from angarium.testing.sim.clock import MILLISECOND, SECOND, START, Scheduler
from angarium.testing.sim.compacting import Compacting
from angarium.testing.sim.consumers import Consumers
from angarium.testing.sim.faults import Faults
from angarium.testing.sim.final_logs import read_final_logs
from angarium.testing.sim.following import FollowingLeaders
from angarium.testing.sim.growing import Growing
from angarium.testing.sim.keyed_clients import KeyedPublisher, KeyedReader
from angarium.testing.sim.near_reader import NearReader
from angarium.testing.sim.network import Network
from angarium.testing.sim.node import SimNode
from angarium.testing.sim.operator import Operator
from angarium.testing.sim.placing import Placing
from angarium.testing.sim.rebalancing import Rebalancing
from angarium.testing.sim.recovery import recover
from angarium.testing.sim.redriver import Redriver
from angarium.testing.sim.repeating import Repeater
from angarium.testing.sim.replacing import Replacing
from angarium.testing.sim.rumours import Rumours
from angarium.testing.sim.settings import OPERATIONS_MIN, Settings, drawn_settings
from angarium.testing.sim.steward import Steward
from angarium.testing.sim.strangers import Strangers
from angarium.testing.sim.timekeeping import WallClock, check_append_time
from angarium.testing.sim.trace import Trace
from angarium.testing.sim.transactor import Transactor
from angarium.testing.sim.wan import placed
from angarium.testing.sim.watch import Watch
from angarium.testing.sim.witness_balance import RebalancingBesideWitnesses

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.machine.catalog import CatalogCommand, CatalogOutcome
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.member import SimMember
    from angarium.testing.sim.overseer import Overseer
    from angarium.testing.sim.scripts import ScriptedClient


@dataclass(slots=True)
class Report:
    """What one run showed."""

    seed: int
    digest: str
    steps: int
    simulated: int
    """Microseconds."""
    operations: int
    acknowledged: int
    """Records."""
    faults: dict[str, int]
    overlapping: int
    eventual_lost: int
    violations: list[Violation]


class World:
    """Everything of one run."""

    def __init__(self, seed: int, settings: Settings | None = None) -> None:
        self.seed = seed
        self.settings = settings or drawn_settings(seed)
        rng = random.Random(seed)
        self.scheduler = Scheduler(START)
        self.trace = Trace()
        self.history = History()
        self.watch = Watch(self.history)
        self.network = Network(
            self.scheduler, random.Random(rng.random()), self._deliver, self.settings.wan
        )
        self.groups = [RaftGroupId(number + 1) for number in range(self.settings.groups)]
        self.node_ids, self.witness_ids = self._ids()
        self.nodes = {
            node: SimNode(self, node, rng.getrandbits(64))
            for node in sorted((*self.node_ids, *self.witness_ids))
        }
        self.operator = Operator(self)
        self.faults = Faults(self, rng.getrandbits(64))
        self.producers = [
            Producer(
                self,
                number + 1,
                self.groups[number % len(self.groups)],
                rng.getrandbits(64),
                window=rng.choice((1, 1, 2, 3)),
                eager=rng.random() < 0.3,
            )
            for number in range(self.settings.producers)
        ]
        self.readers = [
            Reader(self, number + 1, rng.getrandbits(64)) for number in range(self.settings.readers)
        ]
        # Not from the run's own dice, as with members below.
        near = random.Random(seed ^ 0x4EA5)
        self.near_readers = [
            NearReader(self, number + 1, near.getrandbits(64))
            for number in range(self.settings.near_readers)
        ]
        self.stewards = [Steward(self, rng.getrandbits(64)) for _ in range(self.settings.stewards)]
        self.transactors = [
            Transactor(self, number + 1, rng.getrandbits(64))
            for number in range(self.settings.transactors)
        ]
        self.redrivers = [
            Redriver(self, number + 1, rng.getrandbits(64))
            for number in range(self.settings.redrivers)
        ]
        self.compactors = [Compacting(self, seed ^ 0xC0DE) for _ in range(self.settings.compactors)]
        self.strangers = [Strangers(self, seed ^ 0x57A6) for _ in range(self.settings.strangers)]
        self.rumours = [Rumours(self, seed ^ 0x8055) for _ in range(self.settings.rumours)]
        planner = self._planner()
        self.rebalancings = [
            planner(self, seed ^ 0xBA1A) for _ in range(int(self.settings.rebalancing))
        ]
        self.growing = [Growing(self, seed ^ 0x6120) for _ in range(int(self.settings.growing))]
        self.keyed_publishers = [
            KeyedPublisher(self, number + 1, seed ^ 0x6E1 ^ number)
            for number in range(3 * len(self.growing))
        ]
        self.keyed_readers = [
            KeyedReader(self, number + 1, seed ^ 0x6E2 ^ number)
            for number in range(2 * len(self.growing))
        ]
        repeaters = [Repeater(self, seed ^ 0x6E3) for _ in range(int(self.settings.repeating))]
        # Not from the run's own dice: runs without members are what they always were.
        self.consumers = Consumers(self, self.settings.members, seed ^ 0xC0FFEE)
        self.clients: list[
            Producer
            | Reader
            | NearReader
            | Steward
            | Transactor
            | Redriver
            | Compacting
            | SimMember
            | Overseer
            | KeyedPublisher
            | KeyedReader
            | Repeater
        ] = [
            *self.producers,
            *self.readers,
            *self.near_readers,
            *self.stewards,
            *self.transactors,
            *self.redrivers,
            *self.compactors,
            *self.consumers.clients,
            *self.keyed_publishers,
            *self.keyed_readers,
            *repeaters,
        ]
        self._receivers: dict[str, Callable[[Any], None]] = {
            **{node.name: node.receive for node in self.nodes.values()},
            **{client.name: client.receive for client in self.clients},
        }
        self.wall_clocks = {
            node: WallClock(rng.randrange(-50, 50) * MILLISECOND) for node in self.nodes
        }
        """Clocks of different machines disagree."""
        if self.settings.retention:
            self.watch.on_applied = partial(check_append_time, self)
        if (wan := self.settings.wan) is not None:
            for number, node in enumerate(self.nodes.values()):
                self.network.regions[node.name] = wan.region_of(number)
            for number, client in enumerate(self.clients):
                self.network.regions[client.name] = wan.region_of(number)
        self._catalog = CatalogMachine()
        self.enter(Form(cluster="simulated"))
        self._seen: dict[RaftGroupId, int] = {}
        self._done = 0
        self.quiet_until = 0
        """Until when producers send nothing new."""
        self.is_formed = False
        """True once every group has its first members; whoever boots later joins what it lacks."""
        self.broken: Exception | None = None
        """What ended the run before its time."""

    def _ids(self) -> tuple[list[NodeId], list[NodeId]]:
        """Return the nodes, and those besides that have nothing but witnesses.

        These are the last ones, or all of the last region if there are several.
        """
        settings = self.settings
        ids = [NodeId(number + 1) for number in range(settings.nodes + settings.witnesses)]
        if settings.wan is None or not settings.witnesses:
            return ids[: settings.nodes], ids[settings.nodes :]
        last = settings.wan.regions[-1]
        inside = [one for one in ids if settings.wan.region_of(one - 1) == last]
        assert len(inside) == settings.witnesses, "a region for nothing but witnesses"
        return [one for one in ids if one not in inside], inside

    def _planner(self) -> type[Rebalancing]:
        """Return who evens replicas out, if anybody does."""
        if self.settings.witnesses:
            return RebalancingBesideWitnesses
        if self.settings.following:
            return FollowingLeaders
        return Placing if self.settings.placing else Rebalancing

    # --- what the parts ask of the world ----------------------------------------------------

    def note(self, who: str, what: str, *facts: Any) -> None:
        """Write a line of the trace."""
        self.trace.note(self.scheduler.now - START, who, what, *facts)

    def clock_of(self, node: SimNode) -> Micros:
        """Return the time that `node` goes by; by its wall clock, if it compares it with none."""
        if node.time is not None:
            return node.time.now()
        return Micros(self.wall_clocks[node.id].read(self.scheduler.now))

    def node_of(self, replica: ReplicaId) -> SimNode:
        """Return the machine on which `replica` lives."""
        return self.nodes[node_of(replica)]

    def client_names(self) -> list[str]:
        """Return the names of all clients."""
        return [client.name for client in self.clients]

    def ends(self) -> set[str]:
        """Return the names of all nodes and clients."""
        return {*(node.name for node in self.nodes.values()), *self.client_names()}

    def ends_in(self, region: str) -> set[str]:
        """Return the names of the nodes and clients in a region."""
        return {name for name in self.ends() if self.network.regions.get(name) == region}

    def operations_in_flight(self) -> int:
        """Return how many publishes, transactions and trims wait for their fate."""
        waiting = sum(producer.in_flight for producer in self.producers)
        waiting += sum(publisher.in_flight for publisher in self.keyed_publishers)
        waiting += sum(steward.in_flight for steward in self.stewards)
        waiting += sum(transactor.in_flight for transactor in self.transactors)
        return waiting + sum(redriver.in_flight for redriver in self.redrivers)

    def saw(self, group: RaftGroupId, end: int) -> None:
        """Note that a reader knows of committed records up to `end`."""
        self._seen[group] = max(end, self._seen.get(group, 0))

    def seen_end(self, group: RaftGroupId) -> int:
        """Return up to where readers know of committed records."""
        return self._seen.get(group, 0)

    def forget_seen(self, group: RaftGroupId, end: int) -> None:
        """Let readers know of nothing behind `end` any more: it was lost, and they were told."""
        self._seen[group] = min(end, self.seen_end(group))
        for reader in self.readers:
            reader.go_back(group, end)

    def operation_done(self, operation: Publish) -> None:
        """Note that a publish has ended, one way or the other."""
        self._done += 1
        self.note(
            f"producer-{operation.producer}",
            operation.result.value,
            operation.mode.name,
            operation.values[0].decode(),
            "at",
            operation.base_offset,
        )

    def is_caught_up(self, group: RaftGroupId) -> bool:
        """Tell whether every wanted replica of `group` is up and has applied nearly everything.

        One that has not heard that a change of membership is done still needs those who left: to
        it their disks count among those of a majority (seed 1424).
        """
        leader = self.operator.leader(group)
        if leader is None:
            return False
        for node in self.operator.wanted[group]:
            host = self.nodes[node].host
            replica = host.replicas.get(group) if host is not None else None
            if replica is None or replica.applied + 20 < leader.raft.commit:
                return False
            if replica.raft.conf_state != leader.raft.conf_state:
                return False
        if group not in self.operator.witness:
            return True
        witness = self.operator.witness_of(group)
        return (
            witness is not None
            and witness.applied + 20 >= leader.raft.commit
            and witness.raft.conf_state == leader.raft.conf_state
        )

    def is_agreed(self, group: RaftGroupId) -> bool:
        """Tell whether every wanted replica of `group` has applied all that its leader has."""
        leader = self.operator.leader(group)
        if leader is None:
            return False
        for node in self.operator.holders(group):
            host = self.nodes[node].host
            if host is None or group not in host.replicas or group in host.repairs:
                return False
            replica = host.replicas[group]
            # The tail counts as well: an EVENTUAL answer may just have been given for it.
            if replica.is_mending or replica.seen_index != leader.last_index:
                return False
        return True

    def is_witnessed(self, group: RaftGroupId) -> bool:
        """Tell whether the witness of `group`, if it is to have one, has all that its leader has.

        One that was lost to damage is still among the voters until it may begin anew.
        """
        if group not in self.operator.witness:
            return True
        leader, witness = self.operator.leader(group), self.operator.witness_of(group)
        return (
            leader is not None
            and witness is not None
            and witness.last_index == leader.last_index
            and witness.raft.conf_state == leader.raft.conf_state
        )

    def replica_at(self, node: NodeId, group: RaftGroupId) -> PartitionReplica | None:
        """Return the replica of `group` on a machine, if that is up and has one."""
        host = self.nodes[node].host
        return None if host is None else host.replicas.get(group)

    def ends_of_logs(self, group: RaftGroupId) -> dict[ReplicaId, Index]:
        """Return where the logs of the full replicas end that are up."""
        found = (self.replica_at(node, group) for node in self.node_ids)
        return {one.id: one.last_index for one in found if one is not None}

    def enter(self, command: CatalogCommand) -> CatalogOutcome:
        """Enter something into the catalog: its machine without replicas, which cannot fail."""
        index = Index(self._catalog.applied_index + 1)
        return self._catalog.apply(index, Term(1), encode(command)).outcomes[0]

    def let_in(self, client: Producer | ScriptedClient) -> None:
        """Let the network deliver to one more client, in the first region if there are some."""
        if self.settings.wan is not None:
            self.network.regions[client.name] = self.settings.wan.region_of(0)
        self._receivers[client.name] = client.receive

    def let_both_hear(self, node: SimNode, twin: SimNode) -> None:
        """Let the network deliver to two processes what is meant for one node."""

        def receive(payload: Any) -> None:
            node.receive(payload)
            twin.receive(payload)

        self._receivers[node.name] = receive

    # --- the run ----------------------------------------------------------------------------

    def form(self) -> None:
        """Form the cluster and start everybody."""
        rng = random.Random(self.seed ^ 0x5EED)
        for node in self.nodes.values():
            node.boot()
        for at, group in enumerate(self.groups):
            members = self._placed(at, group, rng)
            if self.witness_ids:
                self.operator.witness[group] = rng.choice(self.witness_ids)
                members = [*members, self.operator.witness[group]]
            voters = [self.nodes[member].replica_in(group) for member in members]
            for node in self.nodes.values():
                assert node.host is not None
                if node.id in members:
                    node.host.form_group(group, voters)
                else:
                    node.host.join_group(group, a_witness=node.is_for_witnesses)
        for node in self.nodes.values():
            assert node.host is not None
            # In a real cluster the catalog has a group formed again that a power loss took back.
            node.host.wal.sync()
        self.is_formed = True
        self.operator.start()
        for rebalancing in self.rebalancings:
            rebalancing.start()
        for growing in self.growing:
            growing.start()
        for client in self.clients:
            client.start()

    def _placed(self, at: int, group: RaftGroupId, rng: random.Random) -> list[NodeId]:
        """Decide who holds a group; return who votes."""
        wan, replicas = self.settings.wan, self.settings.replicas
        if wan is None:
            members = rng.sample(self.node_ids, replicas)
        else:
            voters, readers = placed(wan, self.node_ids, replicas=replicas, at=at, rng=rng)
            members, self.operator.readers[group] = sorted(voters), readers
        self.operator.wanted[group] = set(members)
        return members

    def run(self, script: Callable[[World], None] | None = None) -> Report:
        """Let everything happen, heal, and judge. A part that breaks down is a violation, too.

        Faults come at random, or as the `script` says.
        """
        try:
            self.form()
            if script is None:
                self._meet_faults()
            else:
                script(self)
            recover(self)
            # Replicas that have not come together would only show as many losses more.
            if not self.is_broken:
                read_final_logs(self)
        except Exception as broken:
            self.broken = broken
            self.history.incidents.append(f"broke down: {type(broken).__name__}: {broken}")
        return self.report()

    def _meet_faults(self) -> None:
        self.faults.start()
        if self.settings.replacing:
            Replacing(self, self.seed ^ 0xD15C).start()
        for stranger in self.strangers:
            stranger.start()
        for rumours in self.rumours:
            rumours.start()
        self.scheduler.run_until(START + self.settings.time_max, stop=self._has_enough)
        if not self._has_enough():
            self.history.incidents.append(
                f"C10: only {self._done} operations and {self.faults.overlapping} faults under "
                f"load in {self.settings.time_max // SECOND} s"
            )

    def _has_enough(self) -> bool:
        enough_faults = self.faults.overlapping >= self.settings.faults_min
        return self.is_broken or (enough_faults and self._done >= OPERATIONS_MIN)

    @property
    def is_broken(self) -> bool:
        """True once a promise is known to be broken: there is nothing left to wait for."""
        return bool(self.history.incidents)

    def report(self) -> Report:
        """Check the history."""
        acknowledged = [one for one in self.history.publishes if one.result is Result.OK]
        return Report(
            seed=self.seed,
            digest=self.trace.digest,
            steps=self.scheduler.steps,
            simulated=self.scheduler.now - START,
            operations=self._done,
            acknowledged=sum(len(one.values) for one in acknowledged),
            faults=dict(self.faults.counts),
            overlapping=self.faults.overlapping,
            eventual_lost=self.history.eventual_lost,
            violations=violations(self.history),
        )

    def wait(self, patience: int, done: Callable[[], bool]) -> None:
        """Let time pass until `done`, or a promise is broken, or `patience` is at its end."""
        deadline = self.scheduler.now + patience
        while not done() and not self.is_broken and self.scheduler.now < deadline:
            self.scheduler.run_until(min(deadline, self.scheduler.now + 50 * MILLISECOND))

    def _deliver(self, target: str, payload: Any) -> None:
        self._receivers[target](payload)
