"""One simulated machine: a disk that outlives it, and a host that does not.

Like the node's event loop it feeds a `Host` with messages and ticks, sends what that wants sent and
syncs what it wants synced (`_drive`, after every event). Unlike it, the machine can be killed, cut
off from power, stopped, filled up and wiped; what was scheduled in one life never happens in the
next, and what comes while the process is stopped happens when it goes on.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from angarium.errors import CorruptData, DiskFull, StorageError, SyncFailed
from angarium.ids import Incarnation, NodeId, ReplicaId, node_of, replica_id, witness_id
from angarium.log.folder_lock import FolderInUse
from angarium.node.recollections import Recollections
from angarium.node.recovering import due
from angarium.raft.messages import Message
from angarium.replica.damage import Fate
from angarium.replica.host import Host
from angarium.replica.listener import HostListener
from angarium.replica.pacing import OUTRUN_FACTOR
from angarium.testing.disk import SimulatedDisk
from angarium.testing.sim.beats import SimBeats
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.round_trips import SimRoundTrips
from angarium.testing.sim.service import SimService
from angarium.testing.sim.timekeeping import SimTimekeeping

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from angarium.ids import RaftGroupId
    from angarium.replica.host import Sync
    from angarium.replica.pacing import Pace
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.peers import PeerMessage
    from angarium.replica.work import Work
    from angarium.testing.sim.world import World

MAINTENANCE = 150 * MILLISECOND
NEWS = 500 * MILLISECOND
"""How often a node hears how far the others' logs are durable."""
LAST_BYTES = 2_048
"""The end of a file of the log that damage inside it leaves alone: where the end of the last sync
round is lost, that round looks as if it had never been written."""
SAVING = 100 * MILLISECOND
"""How long after it was heard that is on disk, and outlives the process."""
GREETING = 3 * MILLISECOND
"""How long it takes until the others know that a process has started."""


class Said(NamedTuple):
    """What one node says to another: by whoever greeted as `via`, whatever it claims."""

    via: ReplicaId
    group: RaftGroupId
    said: Message | PeerMessage


class _Surviving:
    """A block in which errors are met as a process meets them. Entered for every event."""

    __slots__ = ("_node",)

    def __init__(self, node: SimNode) -> None:
        self._node = node

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return error is not None and self._node.survive(error)


class _Hearing(HostListener):
    """What a host tells the simulator, in one life of its process."""

    def __init__(self, node: SimNode) -> None:
        super().__init__()
        self._name = node.name
        self._world = node.world

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        # Of half the groups followers are told at once what is committed, of the others by and by.
        return raft_group % 2 == 0

    def started(self, replica: PartitionReplica) -> None:
        self._world.watch.follow(self._name, replica)

    def damaged(self, fate: Fate, raft_group: RaftGroupId, what: str) -> None:
        if fate is Fate.LOST:
            lost = "loses its replica of group"
            self._world.note(self._name, lost, raft_group, "to damage:", what)


class SimNode:
    """A machine of the cluster: it can crash, lose power, be paused, fill up, be wiped."""

    def __init__(self, world: World, node: NodeId, seed: int) -> None:
        self.world = world
        self.id = node
        self.name = f"node-{node}"
        self.rng = random.Random(seed)
        self.disk = SimulatedDisk(self.rng)
        self.host: Host | None = None
        self.incarnation = Incarnation(self.rng.getrandbits(48))
        self.renewed: dict[RaftGroupId, Incarnation] = {}
        """Groups in which it lost its replica to damage, and as whom it came back."""
        self.slow_syncs = False
        self.life = 0
        """Counts starts and ends, so that nothing scheduled in one life happens in another."""
        self._paused = False
        self._backlog: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        """What waits for the process to go on."""
        self._surviving = _Surviving(self)
        self._syncing: tuple[Sync, Any] | None = None
        """The sync under way, and what of it is not on the platter yet."""
        self._leading: dict[RaftGroupId, int] = {}
        self._witnessed: dict[RaftGroupId, int] = {}
        """The last term that each of its witnesses led."""
        self.recollections = Recollections()
        """What its process knows of the others' logs."""
        self.saved_ends: dict[ReplicaId, int] = {}
        """What of it is on disk, and outlives the process."""
        self._met: dict[NodeId, int] = {}
        """The life of each other node with which it has exchanged greetings."""
        self._hearing = _Hearing(self)
        self.service = SimService(self)
        """What it does for clients."""
        self.time = SimTimekeeping(self) if world.settings.retention else None
        """What it does about time, in a run in which clocks may be wrong."""
        self._round_trips = SimRoundTrips(self) if world.settings.wan is not None else None
        self.beats = SimBeats(self) if world.settings.beating else None
        """Who is alive as far as it knows, in a run in which that is looked at."""

    @property
    def replica(self) -> ReplicaId:
        """Who this machine is, as long as its disk lasts."""
        return replica_id(self.id, self.incarnation)

    def replica_in(self, group: RaftGroupId) -> ReplicaId:
        """Return who this machine is among the voters of a group, as the catalog would say."""
        full = replica_id(self.id, self.renewed.get(group, self.incarnation))
        return witness_id(full) if self.is_for_witnesses else full

    @property
    def is_for_witnesses(self) -> bool:
        """Whether it has nothing but witnesses."""
        return self.id in self.world.witness_ids

    @property
    def is_up(self) -> bool:
        """True while its process runs, paused or not."""
        return self.host is not None

    @property
    def is_paused(self) -> bool:
        """True between SIGSTOP and SIGCONT."""
        return self._paused

    # --- life and death ---------------------------------------------------------------------

    def boot(self) -> None:
        """Start the process on whatever the disk holds."""
        assert self.host is None
        self.life += 1
        self.recollections = Recollections(self.saved_ends)
        self.service.begin()
        try:
            self.disk.lock()
        except FolderInUse as refused:
            self.world.note(self.name, "is not served twice:", refused)
            return
        try:
            self.host = self._open()
        except StorageError as trouble:
            self.world.note(self.name, "cannot start:", trouble)
            self.disk.crash()
            self.world.scheduler.after(200 * MILLISECOND, self._boot_again, self.life)
            return
        self.later(self.rng.randrange(self.world.settings.tick), self._tick)
        self.later(self.rng.randrange(MAINTENANCE), self._maintain)
        self.later(NEWS, self._hear_news)
        if self.time is not None:
            self.time.begin()
        if self.world.operator.recoveries:
            self.host.await_catalog()
            self.later(GREETING, self.hear_catalog)
        if self._round_trips is not None:
            self._round_trips.begin()
        if self.beats is not None:
            self.beats.begin()
        with self._surviving:
            self._renew_lost()
            if self.world.is_formed:
                self.world.operator.let_in(self)
                self._greet()
            self._drive()

    def crash(self) -> None:
        """SIGKILL: the process is gone, its writes are not."""
        self._die()
        self.disk.crash()

    def stop(self) -> None:
        """SIGTERM: the process ends by itself, and closes its log."""
        if self.host is not None and not self._paused:
            # On a full disk, or one that fails, it ends as if it had been killed.
            with suppress(StorageError):
                if self._syncing is not None:
                    sync, pending = self._syncing
                    self.disk.complete(pending)
                    self.host.finish_sync(sync)
                self.host.close()
        self.crash()

    def lose_power(self) -> None:
        """The plug: unsynced writes survive in part, in any order, torn, or not at all."""
        self._die()
        self.disk.power_loss()

    def wipe(self) -> None:
        """Lose everything on the disk. What starts on it afterwards is somebody else."""
        if self.host is not None:
            self._die()
        self.disk = SimulatedDisk(self.rng)
        self.incarnation = Incarnation(self.rng.getrandbits(48))
        self.renewed.clear()
        self.recollections = Recollections()
        self.saved_ends = {}

    def roll_back(self, copy: Mapping[str, tuple[bytes, int]], prefix: str = "") -> None:
        """Have the disk, or a part of it, replaced by an older copy of itself."""
        if self.host is not None:
            self.crash()
        self.disk.roll_back(copy, prefix)

    def pause(self) -> None:
        """SIGSTOP: what arrives now waits."""
        self._paused = True

    def resume(self) -> None:
        """SIGCONT: everything that waited happens at once."""
        self._paused = False
        backlog, self._backlog = self._backlog, []
        for action, arguments in backlog:
            action(*arguments)

    def opened(self) -> Host:
        """Return the replicas on the disk of a machine that is off; nobody drives them."""
        assert self.host is None
        return self._open()

    def _open(self) -> Host:
        self._hearing = _Hearing(self)
        host = Host(
            self.disk,
            node=self.id,
            incarnation=self.incarnation,
            config=self.world.settings.host,
            jitter=self.rng.randrange,
            listener=self._hearing,
        )
        host.pace.bytes_per_tick = self.world.settings.copy_bytes_per_tick
        self.renewed = dict(host.own_ids.renewed)  # as it tells the catalog at every start
        return host

    def _renew_lost(self) -> None:
        """Give up replicas that cannot go on as themselves, once the others have everything."""
        host = self.host
        assert host is not None
        for group in list(host.lost):
            if host.may_renew(group) and self.world.operator.may_renew(group, self):
                incarnation = Incarnation(self.rng.getrandbits(48))
                with suppress(DiskFull):
                    host.own_ids.save(group, incarnation)
                    host.renew(group, incarnation)
                if group in host.lost:
                    continue  # no room for it yet, or its files are still being written
                # In a real cluster the node tells the catalog.
                self.renewed[group] = host.own_ids.renewed[group]
                self.world.operator.let_in(self)
                self.world.note(self.name, "begins anew in group", group)
        if self.world.is_formed:
            self._join_missing()

    def hear_catalog(self) -> None:
        """Do what the catalog says of groups that went on with one replica; again until it can."""
        host, operator = self.host, self.world.operator
        if host is None:
            return
        sources = [self.world.nodes[one.source].name for one in operator.recoveries.values()]
        if not all(
            self.name == one or self.world.network.is_open(self.name, one) for one in sources
        ):
            self.later(self.world.settings.tick, self.hear_catalog)
            return
        for one in list(
            due(operator.recoveries.values(), node=self.id, own_in=host.own_ids.in_group)
        ):
            if one.has_source:
                host.go_on_alone(one.group, one.fresh)
            else:
                host.give_up_void(one.group, one.fresh)
            if host.own_ids.renewed.get(one.group) != one.fresh:
                self.later(self.world.settings.tick, self.hear_catalog)
                return
            self.renewed[one.group] = one.fresh
            self.world.note(self.name, "is somebody else in group", one.group)
            operator.let_in(self)
        host.serve()

    def _join_missing(self) -> None:
        """Take part in every group there is, as an outsider where it is not a member yet."""
        assert self.host is not None
        for group in self.world.groups:
            host = self.host
            known = (host.replicas, host.witnesses, host.repairs, host.lost)
            if not any(group in one for one in known) and not host.is_leaving(group):
                host.join_group(group, a_witness=self.is_for_witnesses)

    def _greet(self) -> None:
        """Let the others notice a new process, as a connection does that is made anew."""
        for other in self.world.nodes.values():
            if other is not self and other.is_up:
                other.later(GREETING, other.hear_of, self.id)
                self.meet(other)
                other.meet(self)

    def meet(self, other: SimNode) -> bool:
        """Exchange greetings, once in the lives of both; False if that cannot be, or ends badly."""
        if self.host is None or other.host is None or self.is_paused or other.is_paused:
            return False
        if self._met.get(other.id) == other.life:
            return True
        if not self.world.network.is_open(self.name, other.name):
            return False
        reason = self.recollections.objection(other.replica, other.host.wal.end)
        if reason is not None:
            self.world.note(self.name, "refuses:", reason)
            # It ends, and its operator does as it was told.
            self.world.scheduler.after(0, other.be_refused, other.life)
            return False
        self._met[other.id] = other.life
        return True

    def _has_met(self, via: ReplicaId) -> bool:
        """Tell whether somebody who speaks was greeted; strangers are for others to refuse."""
        other = self.world.nodes.get(node_of(via))
        return other is None or other is self or self.meet(other)

    def be_refused(self, life: int) -> None:
        """Hear from another node that this one's disk has gone back in time."""
        if self.life == life and self.host is not None:
            self.wipe()
            self.boot()

    def exchange_news(self) -> None:
        """Hear how far the others' logs are durable, of those that can be reached."""
        is_news = False
        for other in self.world.nodes.values():
            if other is not self and self.meet(other):
                assert other.host is not None
                is_news |= self.recollections.note(other.replica, other.host.wal.durable_end)
        if is_news:
            self.later(SAVING, self._save_marks)

    def _save_marks(self) -> None:
        self.saved_ends = dict(self.recollections.ends)

    def hear_of(self, node: NodeId) -> None:
        """Hear that another machine has a new process."""
        assert self.host is not None
        self.host.link_changed(node)

    def believe_gone(self, node: NodeId) -> None:
        """Believe a rumour that another machine is gone."""
        assert self.host is not None
        begun = self.host.hasten_elections(node)
        if begun:
            self.world.note(self.name, "believes gone: node", node, "of groups", begun)

    def _boot_again(self, life: int) -> None:
        if life == self.life and self.host is None:
            self.boot()

    def _die(self) -> None:
        self.host = None
        self._syncing = None
        self.life += 1
        self._paused = False
        self._backlog.clear()
        self.service.end()
        for group, term in self._leading.items():
            self.world.history.ended_tenures.add((group, self.id, term))
        self._leading.clear()

    # --- damage -----------------------------------------------------------------------------

    def damage(self) -> str:
        """Flip a bit somewhere in a file, where there is something written, and say where."""
        names = [name for name in self.disk.names() if self.disk.length_of(name)]
        if not names:
            return "nowhere"
        name = self.rng.choice(names)
        position = self.rng.randrange(self.disk.length_of(name))
        self.disk.flip_bit(name, position, bit=self.rng.randrange(8))
        return f"{name}@{position}"

    def damage_log(self, *, is_stale: bool = False) -> str:
        """Flip a bit inside the log, or leave an old page in it, and say where."""
        names = [one for one in self.disk.names() if one.startswith("wal/") and ".log" in one]
        ends = {name: self.disk.length_of(name) - LAST_BYTES for name in names}
        names = [name for name in names if ends[name] > 0]
        if not names:
            return "nowhere"
        name = self.rng.choice(names)
        position = self.rng.randrange(ends[name])
        if is_stale:
            self.disk.lose_write(name, position)
        else:
            self.disk.flip_bit(name, position, bit=self.rng.randrange(8))
        return f"{name}@{position}"

    # --- events -----------------------------------------------------------------------------

    def receive(self, payload: Any) -> None:
        """Take something from the network."""
        self._happen(self.life, self._handle, (payload,))

    def _handle(self, payload: Any) -> None:
        host = self.host
        assert host is not None
        match payload:
            case Said() if not self._has_met(payload.via):
                pass  # what comes from somebody who was not greeted, or was refused, is not taken
            case Said(via, group, Message() as message):
                host.deliver(group, message, via=via)
            case Said():
                assert not isinstance(payload.said, Message)
                host.deliver_from_peer(payload.said, via=payload.via)
            case _ if self.time is not None and self.time.handle(payload):
                pass
            case _ if self._round_trips is not None and self._round_trips.handle(payload):
                pass
            case _ if self.beats is not None and self.beats.handle(payload):
                pass
            case _:
                assert self.service.handle(host, payload), "only nodes and clients speak here"

    def later(self, delay: int, action: Callable[..., object], *arguments: Any) -> None:
        """Let something happen after so long, in this life of the process."""
        self.world.scheduler.after(delay, self._happen, self.life, action, arguments)

    def _happen(self, life: int, action: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        if life != self.life or self.host is None:
            return
        if not self.puts_off(self._happen, life, action, arguments):
            self.do(action, *arguments)

    def puts_off(self, action: Callable[..., object], *arguments: Any) -> bool:
        """Keep something for when the process goes on, if it is stopped; tell whether it is."""
        if self._paused:
            self._backlog.append((action, arguments))
        return self._paused

    def do(self, action: Callable[..., object], *arguments: Any) -> None:
        """Let something happen now, and carry out what comes of it."""
        with self._surviving:
            action(*arguments)
            self._drive()

    def poke(self, replica: PartitionReplica) -> None:
        """Carry out what somebody else asked of a replica on this machine."""
        if self.host is not None and not self._paused:
            self.do(replica.poke)

    def survive(self, error: BaseException) -> bool:
        """Do what a process does about an error that it must not live with; False if it may."""
        is_over = True
        if isinstance(error, SyncFailed):
            # What is on disk is unknown: stop, and come back on what is really there.
            self.world.note(self.name, "stops:", error)
            self.lose_power()
            self.world.scheduler.after(300 * MILLISECOND, self._boot_again, self.life)
        elif isinstance(error, CorruptData | DiskFull):
            # Opening the files again verifies them, and repairs what can be repaired.
            self.world.note(self.name, "stops:", error)
            self.crash()
            self.world.scheduler.after(100 * MILLISECOND, self._boot_again, self.life)
        else:
            is_over = False
        return is_over

    # --- what goes on by itself -------------------------------------------------------------

    def _tick(self) -> None:
        assert self.host is not None
        self.later(self.world.settings.tick, self._tick)
        self._pace_copies(self.host.pace)
        self.host.tick()

    def _pace_copies(self, pace: Pace) -> None:
        """Let copies pass as on a node whose publishers are always disturbed by them."""
        least = self.world.settings.copy_bytes_per_tick
        if least is not None:
            pace.bytes_per_tick = least * OUTRUN_FACTOR**pace.outrun_times

    def _hear_news(self) -> None:
        self.later(NEWS, self._hear_news)
        self.exchange_news()

    def _maintain(self) -> None:
        assert self.host is not None
        self._carry_on(self._housekeeping(self.host), None)

    def _housekeeping(self, host: Host) -> Generator[Work, None, None]:
        yield from host.maintain()
        self._renew_lost()
        self.later(MAINTENANCE, self._maintain)

    def _carry_on(self, steps: Generator[Work, None, None], failure: Exception | None) -> None:
        """Let work that blocks go on up to its next wait for the disk."""
        try:
            work = next(steps) if failure is None else steps.throw(failure)
        except StopIteration:
            return
        self.world.scheduler.after(self._latency(), self._work, self.life, steps, work)

    def _work(self, life: int, steps: Generator[Work, None, None], work: Work) -> None:
        """Do what waits for the disk, as another thread would; the loop hears of it later."""
        if life != self.life or self.host is None:
            return
        failure: Exception | None = None
        try:
            work()
        except StorageError as error:
            failure = error
        self.later(self.rng.randrange(1_000), self._carry_on, steps, failure)

    def _drive(self) -> None:
        """Do what the host wants after an input: send, sync, and let the world look."""
        host = self.host
        assert host is not None
        send, name = self.world.network.send, self.name
        for chore in host.outbox.take_chores():
            self.later(0, self._carry_on, chore, None)
        if host.outbox.is_news_awaited:
            host.outbox.release_commit_news()
        for group, message in host.outbox.take_raft_messages():
            send(name, f"node-{node_of(message.to)}", Said(host.id, group, message))
        for told in host.outbox.take_peer_messages():
            send(name, f"node-{node_of(told.to)}", Said(host.id, told.group, told))
        sync = host.begin_sync()
        if sync is not None:
            with self.disk.deferring() as pending:
                sync.write()
            self._syncing = sync, pending
            self.world.scheduler.after(self._latency(), self._synced, self.life, sync, pending)
        if self.service.lending is not None:
            self._hearing.tell((self.service.lending.host,))
        self._look(host)

    def _latency(self) -> int:
        """Draw how long the disk takes for a sync, in microseconds."""
        latency = self.rng.randrange(100, 2_000)
        return latency * 40 if self.slow_syncs else latency

    def _synced(self, life: int, sync: Sync, pending: Any) -> None:
        if life == self.life and self.host is not None:
            self.disk.complete(pending)  # a process that is stopped does not keep the disk from it
            self._happen(life, self._finish_sync, (sync,))

    def _finish_sync(self, sync: Sync) -> None:
        assert self.host is not None
        self._syncing = None
        self.host.finish_sync(sync)

    def _look(self, host: Host) -> None:
        """Let the world compare what this node believes with what others do."""
        for witness in host.witnesses.values():
            self.world.watch.look_at_leader(witness)
            if witness.raft.is_leader and self._witnessed.get(witness.group) != witness.raft.term:
                self._witnessed[witness.group] = witness.raft.term
                self.world.note(
                    self.name, "a witness, leads group", witness.group, "in term", witness.raft.term
                )
            leader = self.world.operator.leader(witness.group)
            # A disk that went back has less, and is about to be refused.
            if leader is not None and not self.world.settings.replacing:
                ends = self.world.ends_of_logs(witness.group)
                self.world.watch.look_at_witness(witness, leader, ends)
        for group, replica in host.replicas.items():
            self.world.watch.look(replica)
            term = replica.raft.term if replica.may_serve else None
            before = self._leading.get(group)
            if term != before:
                if before is not None:
                    self.world.history.ended_tenures.add((group, self.id, before))
                    del self._leading[group]
                if term is not None:
                    self._leading[group] = term
                    self.world.note(self.name, "leads group", group, "in term", term)
