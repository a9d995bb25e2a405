"""One run: a cluster, its clients, its faults, from one seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from angarium.batch import Batch
from angarium.errors import CorruptData
from angarium.ids import GroupId, Micros, NodeId, ReplicaId, node_of
from angarium.log.memory_disk import ROOMY
from angarium.log.segments import SegmentConfig
from angarium.log.segments.frames import frame_at
from angarium.log.wal import WalConfig
from angarium.modes import DeliveryMode
from angarium.replica.config import ReplicaConfig
from angarium.replica.host import HostConfig
from angarium.testing.checkers import Violation, violations
from angarium.testing.history import FinalLog, History, LogRecord, Publish, Result
from angarium.testing.sim.clients import Producer, Reader
from angarium.testing.sim.clock import MILLISECOND, SECOND, Scheduler
from angarium.testing.sim.compacting import SHARE_COMPACTED, Compacting, may_be_compacted
from angarium.testing.sim.consumers import Consumers
from angarium.testing.sim.faults import FaultProfile, Faults
from angarium.testing.sim.network import Network, Weather
from angarium.testing.sim.node import SimNode
from angarium.testing.sim.operator import Operator
from angarium.testing.sim.redriver import Redriver
from angarium.testing.sim.steward import Steward
from angarium.testing.sim.trace import Trace
from angarium.testing.sim.transactor import Transactor
from angarium.testing.sim.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.member import SimMember
    from angarium.testing.sim.overseer import Overseer

START = 1_700_000_000 * SECOND
"""When simulated time begins."""

OPERATIONS_MIN = 200
"""Client operations every run completes."""

MENDINGS_MAX = 5
"""How often reading a log to its end may meet damage; one flipped bit is one mending."""

OVERLAPPING_FAULTS_MIN = 5
"""Faults every run sees strike while an operation is in flight."""


def small_host() -> HostConfig:
    """Return settings under which a short run meets every rare event: rolls, snapshots, copies."""
    return HostConfig(
        replica=ReplicaConfig(
            snapshot_entries=60,
            snapshot_keep_entries=15,
            snapshot_wait_entries=600,
            transfer_chunk_bytes=1_024,
            transfer_patience_ticks=15,
            message_bytes_max=4_096,
            inflight_messages_max=8,
            rest_after_ticks=6,
        ),
        wal=WalConfig(
            file_bytes=16_384, reserve_bytes=8_192, cache_bytes=4_096, smooth_bytes=1_024
        ),
        segments=SegmentConfig(segment_bytes=8_192),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The size of a run."""

    nodes: int = 4
    replicas: int = 3
    groups: int = 1
    producers: int = 4
    readers: int = 2
    stewards: int = 0
    """One trims and reserves, or none does."""
    transactors: int = 0
    redrivers: int = 0
    """Clients that send the same dead letters back."""
    members: int = 0
    """Members of each consumer group; with none there are no groups."""
    compactors: int = 0
    """One has logs compacted, or none does. Not together with transactions or groups."""
    sharing_micros: int = 0
    """How long a leader waits for more publishes to go into the same entry."""
    faults_min: int = 10
    """Faults that strike while operations are in flight, at least, before the run ends."""
    time_max: int = 120 * SECOND
    host: HostConfig = field(default_factory=small_host)
    faults: FaultProfile = field(default_factory=FaultProfile)


def drawn_settings(seed: int) -> Settings:
    """Return the size of the run that belongs to `seed`."""
    settings = _drawn_settings(seed)
    # Not from the same dice, so that the other runs are what they always were.
    is_compacted = random.Random(seed ^ 0xC0DE).random() < SHARE_COMPACTED
    return replace(settings, compactors=int(is_compacted and may_be_compacted(settings)))


def _drawn_settings(seed: int) -> Settings:
    rng = random.Random(seed ^ 0xD1CE)
    five = rng.random() < 0.1
    return Settings(
        nodes=5 if five else rng.choice((4, 4, 4, 5)),
        replicas=5 if five else 3,
        groups=rng.choice((1, 1, 2)),
        stewards=rng.choice((0, 0, 1)),
        transactors=rng.choice((0, 0, 1, 2)),
        sharing_micros=rng.choice((0, 0, 1_000)),
        faults_min=rng.choice((OVERLAPPING_FAULTS_MIN, 10, 20)),
        redrivers=rng.choice((0, 0, 0, 2)),
        members=rng.choice((0, 0, 0, 3)),
    )


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
        self.network = Network(self.scheduler, random.Random(rng.random()), self._deliver)
        self.groups = [GroupId(number + 1) for number in range(self.settings.groups)]
        self.node_ids = [NodeId(number + 1) for number in range(self.settings.nodes)]
        self.nodes = {node: SimNode(self, node, rng.getrandbits(64)) for node in self.node_ids}
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
        # Not from the run's own dice: runs without members are what they always were.
        self.consumers = Consumers(self, self.settings.members, seed ^ 0xC0FFEE)
        self.clients: list[
            Producer | Reader | Steward | Transactor | Redriver | Compacting | SimMember | Overseer
        ] = [
            *self.producers,
            *self.readers,
            *self.stewards,
            *self.transactors,
            *self.redrivers,
            *self.compactors,
            *self.consumers.clients,
        ]
        self._places: dict[str, Callable[[Any], None]] = {
            **{node.name: node.receive for node in self.nodes.values()},
            **{client.name: client.receive for client in self.clients},
        }
        self._skew = {node: rng.randrange(-50, 50) * MILLISECOND for node in self.node_ids}
        self._seen: dict[GroupId, int] = {}
        self._done = 0
        self.quiet_until = 0
        """Until when producers send nothing new."""
        self.is_formed = False
        """True once every group has its first members; whoever boots later joins what it lacks."""
        self.broken: Exception | None = None
        """What ended the run before its time."""

    # --- what the parts ask of the world ----------------------------------------------------

    def note(self, who: str, what: str, *facts: Any) -> None:
        """Write a line of the trace."""
        self.trace.note(self.scheduler.now - START, who, what, *facts)

    def clock_of(self, node: SimNode) -> Micros:
        """Return what the wall clock of `node` says: clocks of different machines disagree."""
        return Micros(self.scheduler.now + self._skew[node.id])

    def node_of(self, replica: ReplicaId) -> SimNode:
        """Return the machine on which `replica` lives."""
        return self.nodes[node_of(replica)]

    def client_names(self) -> list[str]:
        """Return the names of all clients."""
        return [client.name for client in self.clients]

    def operations_in_flight(self) -> int:
        """Return how many publishes, transactions and trims wait for their fate."""
        waiting = sum(producer.in_flight for producer in self.producers)
        waiting += sum(steward.in_flight for steward in self.stewards)
        waiting += sum(transactor.in_flight for transactor in self.transactors)
        return waiting + sum(redriver.in_flight for redriver in self.redrivers)

    def saw(self, group: GroupId, end: int) -> None:
        """Note that a reader knows of committed records up to `end`."""
        self._seen[group] = max(end, self._seen.get(group, 0))

    def seen_end(self, group: GroupId) -> int:
        """Return up to where readers know of committed records."""
        return self._seen.get(group, 0)

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

    def is_caught_up(self, group: GroupId) -> bool:
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
        return True

    # --- the run ----------------------------------------------------------------------------

    def form(self) -> None:
        """Form the cluster and start everybody."""
        rng = random.Random(self.seed ^ 0x5EED)
        for node in self.nodes.values():
            node.boot()
        for group in self.groups:
            members = rng.sample(self.node_ids, self.settings.replicas)
            self.operator.wanted[group] = set(members)
            voters = [self.nodes[member].replica for member in members]
            for node in self.nodes.values():
                assert node.host is not None
                if node.id in members:
                    node.host.form_group(group, voters)
                else:
                    node.host.join_group(group)
        for node in self.nodes.values():
            assert node.host is not None
            # In a real cluster the catalog has a group formed again that a power loss took back.
            node.host.wal.sync()
        self.is_formed = True
        self.operator.start()
        for client in self.clients:
            client.start()

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
            self._conclude()
        except Exception as broken:
            self.broken = broken
            self.history.incidents.append(f"broke down: {type(broken).__name__}: {broken}")
        return self.report()

    def _meet_faults(self) -> None:
        self.faults.start()
        self.scheduler.run_until(START + self.settings.time_max, stop=self._has_enough)
        if not self._has_enough():
            self.history.incidents.append(
                f"C10: only {self._done} operations and {self.faults.overlapping} faults under "
                f"load in {self.settings.time_max // SECOND} s"
            )

    def _has_enough(self) -> bool:
        enough_faults = self.faults.overlapping >= self.settings.faults_min
        return self._is_broken or (enough_faults and self._done >= OPERATIONS_MIN)

    @property
    def _is_broken(self) -> bool:
        """True once a promise is known to be broken: there is nothing left to wait for."""
        return bool(self.history.incidents)

    def _conclude(self) -> None:
        """Heal everything, wait for the cluster to recover (C10), and read what is left."""
        self.heal()
        for step in (
            self._expect_acknowledgements,
            self._expect_groups_to_finish,
            self._expect_convergence,
        ):
            if not self._is_broken:
                step()
        # Replicas that have not come together would only show as many losses more.
        if not self._is_broken:
            self._read_final_logs()

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

    def heal(self) -> None:
        """End every fault and stop making new ones; clients stop asking for more."""
        self.faults.active = False
        for client in self.clients:
            client.active = False
        self.network.heal()
        self.network.weather = Weather()
        for node in self.nodes.values():
            node.slow_syncs = False
            node.disk.capacity_bytes = ROOMY
            node.disk.fail_syncs(0)
            if node.is_paused:
                node.resume()
            if not node.is_up:
                node.boot()
        self.note("world", "is healed")

    def _expect_acknowledgements(self) -> None:
        """Within 5 s of healing every group acknowledges a CONSISTENT publish."""
        probes: list[Publish] = []
        for number, group in enumerate(self.groups):
            prober = Producer(
                self,
                1_000 + number,
                group,
                self.seed + number,
                window=1,
                eager=True,
                gives_up=0.0,
            )
            self._places[prober.name] = prober.receive
            probes.append(prober.publish_one(DeliveryMode.CONSISTENT))

        def answered() -> bool:
            return all(probe.result is Result.OK for probe in probes)

        self.wait(5 * SECOND, answered)
        if self._is_broken:
            return
        for probe in probes:
            if probe.result is not Result.OK:
                self.history.incidents.append(
                    f"C10: group {probe.group} gave no CONSISTENT ack within 5 s of healing"
                )

    def _expect_groups_to_finish(self) -> None:
        """Members that only work, and fail no more, bring every group to its end."""
        if self.settings.members:
            self.wait(40 * SECOND, self.consumers.are_done)
            self.consumers.read_final()

    def _expect_convergence(self) -> None:
        """Every replica ends with the same log, and everybody's operations with an answer."""

        def settled() -> bool:
            return not self.operations_in_flight() and all(
                self.operator.is_settled(group) and self._agree(group) for group in self.groups
            )

        self.wait(20 * SECOND, settled)
        if self._is_broken:
            return
        for group in self.groups:
            if not (self.operator.is_settled(group) and self._agree(group)):
                self.history.incidents.append(
                    f"C10: group {group} did not settle within 20 s of healing"
                )
        if self.operations_in_flight():
            self.history.incidents.append(
                f"C10: {self.operations_in_flight()} operations have no answer 20 s after healing"
            )

    def _agree(self, group: GroupId) -> bool:
        leader = self.operator.leader(group)
        if leader is None:
            return False
        for node in self.operator.wanted[group]:
            host = self.nodes[node].host
            if host is None or group not in host.replicas or group in host.repairs:
                return False
            replica = host.replicas[group]
            # The tail counts as well: an EVENTUAL answer may just have been given for it.
            if replica.is_mending or replica.applied != leader.last_index:
                return False
        return True

    def wait(self, patience: int, done: Callable[[], bool]) -> None:
        """Let time pass until `done`, or a promise is broken, or `patience` is at its end."""
        deadline = self.scheduler.now + patience
        while not done() and not self._is_broken and self.scheduler.now < deadline:
            self.scheduler.run_until(min(deadline, self.scheduler.now + 50 * MILLISECOND))

    def _read_final_logs(self) -> None:
        for compactor in self.compactors:
            compactor.expect_the_end()
        for group in self.groups:
            for node in sorted(self.operator.wanted[group]):
                host = self.nodes[node].host
                if host is not None and group in host.replicas:
                    self.history.eventual_lost += host.replicas[group].partition.acks.eventual_lost
                    self.history.final.append(self._final_log(node, group))
        for compactor in self.compactors:
            compactor.judge()

    def _final_log(self, node: NodeId, group: GroupId) -> FinalLog:
        """Read everything a replica holds; what turns out damaged must be mended by its peers.

        A replica that nobody can mend comes back as somebody else, so it is looked up anew.
        """
        for _ in range(MENDINGS_MAX):
            replica = self._replica_at(node, group)
            if replica is not None:
                try:
                    return _read_all(node, group, replica)
                except CorruptData as damaged:
                    self.note(f"node-{node}", "must mend:", damaged)
            self.wait(5 * SECOND, lambda: self._is_mended(node, group))
        self.history.incidents.append(f"node {node} group {group} could not mend its segments")
        return FinalLog(node, group, 0, 0, ())

    def _replica_at(self, node: NodeId, group: GroupId) -> PartitionReplica | None:
        host = self.nodes[node].host
        return None if host is None else host.replicas.get(group)

    def _is_mended(self, node: NodeId, group: GroupId) -> bool:
        replica = self._replica_at(node, group)
        return replica is not None and not replica.is_mending and self._agree(group)

    def _deliver(self, target: str, payload: Any) -> None:
        self._places[target](payload)


def _read_all(node: NodeId, group: GroupId, replica: PartitionReplica) -> FinalLog:
    log = replica.partition.log
    records: list[LogRecord] = []
    gaps: list[tuple[int, int]] = []
    offset = log.start_offset
    while offset < log.end_offset:
        for view in log.read(offset, 1 << 20, gaps=True):
            frame = frame_at(view, 0)
            assert frame is not None, "a log holds batches and gaps"
            if frame.is_gap:
                gaps.append((frame.base_offset, frame.next_offset))
            else:
                batch = Batch.parse(view, compacted=True)
                records += _records(batch, log.start_offset)
            offset = frame.next_offset
    return FinalLog(node, group, log.start_offset, log.end_offset, tuple(records), tuple(gaps))


def _records(batch: Batch, start: int) -> Iterator[LogRecord]:
    """Yield the records of a batch that a trim has left."""
    for record in batch:
        if record.offset >= start:
            yield LogRecord(
                record.offset,
                record.value or b"",
                batch.producer_id,
                batch.epoch,
                batch.first_sequence + record.offset - batch.base_offset,
            )
