"""One simulated machine: a disk that outlives it, and a host that does not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from angarium.errors import (
    AngariumError,
    CorruptData,
    DiskFull,
    NotLeader,
    OffsetOutOfRange,
    StorageError,
    SyncFailed,
)
from angarium.ids import Incarnation, NodeId, ReplicaId, node_of, replica_id
from angarium.machine.commands import Cursors, Transacting
from angarium.replica.acks import Publishing
from angarium.replica.host import Host
from angarium.replica.repair import IdentityLost
from angarium.testing.disk import SimulatedDisk
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.group_requests import Attach, Attached, Detach, Say
from angarium.testing.sim.lender import Lender
from angarium.testing.sim.requests import (
    FetchReply,
    FetchRequest,
    HighWaterReply,
    HighWaterRequest,
    PublishReply,
    PublishRequest,
    SubmitRequest,
)
from angarium.testing.sim.settling import Settling

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from angarium.ids import GroupId
    from angarium.replica.acks import Published
    from angarium.replica.host import Sync
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.work import Work
    from angarium.testing.sim.world import World
    from angarium.wire.operations.transactions import Told

TICK = 20 * MILLISECOND
MAINTENANCE = 150 * MILLISECOND


class _Surviving:
    """A block in which errors are met as a process meets them. Entered for every event."""

    __slots__ = ("_node",)

    def __init__(self, node: SimNode) -> None:
        self._node = node

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return error is not None and self._node.survive(error)


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
        self.slow_syncs = False
        self.life = 0
        """Counts starts and ends, so that nothing scheduled in one life happens in another."""
        self._paused = False
        self._backlog: list[tuple[Any, tuple[Any, ...]]] = []
        self._surviving = _Surviving(self)
        self._leading: dict[GroupId, int] = {}
        self._sharing: dict[GroupId, list[Publishing]] = {}
        """Publishes that will go into one entry."""
        self._settling = Settling()
        self._lenders: dict[GroupId, Lender] = {}
        """What serves the consumer groups of each partition this node leads."""
        self._letters = 0

    @property
    def replica(self) -> ReplicaId:
        """Who this machine is among voters, as long as its disk lasts."""
        return replica_id(self.id, self.incarnation)

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
        try:
            self.host = self._open()
        except IdentityLost as lost:
            self.world.note(self.name, "loses its identity:", lost)
            self.wipe()
            self.host = self._open()
        except StorageError as trouble:
            self.world.note(self.name, "cannot start:", trouble)
            self.disk.crash()
            self.world.scheduler.after(200 * MILLISECOND, self._boot_again, self.life)
            return
        self.world.scheduler.after(self.rng.randrange(TICK), self._tick, self.life)
        self.world.scheduler.after(self.rng.randrange(MAINTENANCE), self._maintain, self.life)
        with self._surviving:
            if self.world.is_formed:
                self._join_missing()
            self._drive()

    def crash(self) -> None:
        """SIGKILL: the process is gone, its writes are not."""
        self._die()
        self.disk.crash()

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

    def pause(self) -> None:
        """SIGSTOP: what arrives now waits."""
        self._paused = True

    def resume(self) -> None:
        """SIGCONT: everything that waited happens at once."""
        self._paused = False
        backlog, self._backlog = self._backlog, []
        for action, arguments in backlog:
            action(*arguments)

    def _open(self) -> Host:
        host = Host(
            self.disk,
            node=self.id,
            incarnation=self.incarnation,
            config=self.world.settings.host,
            jitter=self.rng.randrange,
        )

        def watch(group: GroupId) -> None:
            self.world.watch.follow(self.name, host.replicas[group])

        for group in host.replicas:
            watch(group)
        host.on_started = watch
        return host

    def _join_missing(self) -> None:
        """Take part in every group there is, as an outsider where it is not a member yet."""
        assert self.host is not None
        for group in self.world.groups:
            if group not in self.host.replicas and group not in self.host.repairs:
                self.host.join_group(group)

    def _boot_again(self, life: int) -> None:
        if life == self.life and self.host is None:
            self.boot()

    def _die(self) -> None:
        self.host = None
        self.life += 1
        self._paused = False
        self._backlog.clear()
        self._sharing.clear()
        self._settling = Settling()
        for lender in self._lenders.values():
            lender.end()
        self._lenders.clear()
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

    # --- events -----------------------------------------------------------------------------

    def receive(self, payload: Any) -> None:
        """Take something from the network."""
        if self.host is None:
            return
        if self._paused:
            self._backlog.append((self._handle, (self.life, payload)))
            return
        self._handle(self.life, payload)

    def _handle(self, life: int, payload: Any) -> None:
        host = self.host
        if host is None or life != self.life:
            return
        with self._surviving:
            match payload:
                case (group, message):
                    host.deliver(group, message)
                case PublishRequest():
                    self._publish(host, payload)
                case SubmitRequest():
                    self._submit(host, payload)
                case FetchRequest():
                    self._fetch(host, payload)
                case HighWaterRequest():
                    self._high_water(host, payload)
                case Attach() | Detach() | Say():
                    self._take_from_member(payload)
                case PublishReply():
                    for lender in self._lenders.values():
                        lender.letter_answered(payload)
                case _:
                    host.deliver_from_peer(payload)
            self._drive()

    def survive(self, error: BaseException) -> bool:
        """Do what a process does about an error that it must not live with; False if it may."""
        is_over = True
        if isinstance(error, IdentityLost):
            self.world.note(self.name, "loses its identity:", error)
            self.wipe()
            self.boot()
        elif isinstance(error, SyncFailed):
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

    def _tick(self, life: int) -> None:
        if life != self.life or self.host is None:
            return
        if self._paused:
            self._backlog.append((self._tick, (life,)))
            return
        self.world.scheduler.after(TICK, self._tick, life)
        with self._surviving:
            self.host.tick()
            self._drive()

    def _maintain(self, life: int) -> None:
        if life != self.life or self.host is None:
            return
        if self._paused:
            self._backlog.append((self._maintain, (life,)))
            return
        self._carry_on(life, self._housekeeping(life, self.host), None)

    def _housekeeping(self, life: int, host: Host) -> Generator[Work, None, None]:
        yield from host.maintain()
        self.world.scheduler.after(MAINTENANCE, self._maintain, life)

    def _carry_on(
        self, life: int, steps: Generator[Work, None, None], failure: Exception | None
    ) -> None:
        """Let work that blocks go on up to its next wait for the disk."""
        if life != self.life or self.host is None:
            return
        if self._paused:
            self._backlog.append((self._carry_on, (life, steps, failure)))
            return
        with self._surviving:
            try:
                work = next(steps) if failure is None else steps.throw(failure)
            except StopIteration:
                pass
            else:
                self.world.scheduler.after(self._latency(), self._work, life, steps, work)
            self._drive()

    def _work(self, life: int, steps: Generator[Work, None, None], work: Work) -> None:
        """Do what waits for the disk, as another thread would; the loop hears of it later."""
        if life != self.life or self.host is None:
            return
        failure: Exception | None = None
        try:
            work()
        except StorageError as error:
            failure = error
        delay = self.rng.randrange(1_000)
        self.world.scheduler.after(delay, self._carry_on, life, steps, failure)

    def _drive(self) -> None:
        """Do what the host wants after an input: send, sync, and let the world look."""
        host = self.host
        assert host is not None
        send, name = self.world.network.send, self.name
        for chore in host.outbox.take_chores():
            self.world.scheduler.after(0, self._carry_on, self.life, chore, None)
        host.outbox.release_commit_news()
        for group, message in host.outbox.take_raft_messages():
            send(name, f"node-{node_of(message.to)}", (group, message))
        for told in host.outbox.take_peer_messages():
            send(name, f"node-{node_of(told.to)}", told)
        sync = host.begin_sync()
        if sync is not None:
            with self.disk.deferring() as pending:
                host.write(sync)
            self.world.scheduler.after(self._latency(), self._synced, self.life, sync, pending)
        self._look(host)

    def _latency(self) -> int:
        """Draw how long the disk takes for a sync, in microseconds."""
        latency = self.rng.randrange(100, 2_000)
        return latency * 40 if self.slow_syncs else latency

    def _synced(self, life: int, sync: Sync, pending: Any) -> None:
        if life != self.life or self.host is None:
            return
        self.disk.complete(pending)
        if self._paused:
            self._backlog.append((self._finish_sync, (life, sync)))
            return
        self._finish_sync(life, sync)

    def _finish_sync(self, life: int, sync: Sync) -> None:
        if life != self.life or self.host is None:
            return
        with self._surviving:
            self.host.finish_sync(sync)
            self._drive()

    def _look(self, host: Host) -> None:
        """Let the world compare what this node believes with what others do."""
        for group, replica in host.replicas.items():
            self.world.watch.look(replica)
            term = replica.raft.term if replica.may_serve else None
            before = self._leading.get(group)
            if term != before:
                if before is not None:
                    self.world.history.ended_tenures.add((group, self.id, before))
                    del self._leading[group]
                if group in self._lenders:
                    self._lenders.pop(group).end()
                if term is not None:
                    self._leading[group] = term
                    if self.world.settings.members:
                        self._lenders[group] = Lender(self, replica, term)
                    self.world.note(self.name, "leads group", group, "in term", term)

    # --- clients ----------------------------------------------------------------------------

    def _publish(self, host: Host, request: PublishRequest) -> None:
        def reply(answer: Published | AngariumError) -> None:
            said = PublishReply(request.number, self.id, answer)
            self.world.network.send_once(self.name, request.client, said)

        replica = host.replicas.get(request.group)
        if replica is None:
            reply(NotLeader())
            return
        # The leader stamps in place, and what the network holds may arrive twice.
        publishing = Publishing([bytearray(request.batch)], request.mode, reply)
        wait = self.world.settings.sharing_micros
        if not wait:
            self._admit(replica, [publishing])
        elif request.group in self._sharing:
            self._sharing[request.group].append(publishing)
        else:
            self._sharing[request.group] = [publishing]
            self.world.scheduler.after(wait, self._share, self.life, request.group)

    def _share(self, life: int, group: GroupId) -> None:
        if life != self.life or self.host is None:
            return
        if self._paused:
            self._backlog.append((self._share, (life, group)))
            return
        with self._surviving:
            self._admit(self.host.replicas[group], self._sharing.pop(group))
            self._drive()

    def _admit(self, replica: PartitionReplica, requests: list[Publishing]) -> None:
        replica.publish(requests, now=self.world.clock_of(self))
        replica.process()

    def _submit(self, host: Host, request: SubmitRequest) -> None:
        command = request.command
        replica = host.replicas.get(request.group)

        def reply(answer: Published | AngariumError, known: Told | None = None) -> None:
            said = PublishReply(request.number, self.id, answer, known)
            self.world.network.send_once(self.name, request.client, said)

        if replica is None:
            reply(NotLeader())
        elif isinstance(command, Transacting):
            now = self.world.clock_of(self)
            self._settling.submit(request.group, replica, command, now=now, reply=reply)
        else:
            replica.partition.submit(command, now=self.world.clock_of(self), reply=reply)
            replica.process()
            if isinstance(command, Cursors) and request.group in self._lenders:
                # Whatever comes of it, its groups are looked at soon, and again when it is applied.
                lender = self._lenders[request.group]
                self.world.scheduler.after(50 * MILLISECOND, self.tell_lender, lender, None, None)

    def _fetch(self, host: Host, request: FetchRequest) -> None:
        replica = host.replicas.get(request.group)
        if replica is None:
            return
        try:
            batches = replica.fetch(request.offset, bytes_max=request.bytes_max)
        except OffsetOutOfRange as outside:
            # Trimmed away, or this replica is not there yet.
            if request.offset < outside.start:
                early = FetchReply(request.number, self.id, (), outside.start)
                self.world.network.send_once(self.name, request.client, early)
            return
        except StorageError as damaged:
            self.world.note(self.name, "cannot serve:", damaged)
            return
        reply = FetchReply(request.number, self.id, tuple(bytes(batch) for batch in batches))
        self.world.network.send_once(self.name, request.client, reply)

    def _high_water(self, host: Host, request: HighWaterRequest) -> None:
        replica = host.replicas.get(request.group)
        if replica is None:
            return

        def done(refused: AngariumError | None) -> None:
            if refused is None:
                said = HighWaterReply(request.number, self.id, replica.end_offset)
                self.world.network.send_once(self.name, request.client, said)

        replica.read_index(done)
        replica.process()

    def poke(self, replica: PartitionReplica) -> None:
        """Carry out what somebody else asked of a replica on this machine."""
        if self.host is not None and not self._paused:
            with self._surviving:
                replica.process()
                self._drive()

    # --- consumer groups --------------------------------------------------------------------

    def _take_from_member(self, request: Attach | Detach | Say) -> None:
        lender = self._lenders.get(request.partition)
        if lender is not None:
            lender.take(request)
        elif isinstance(request, Attach):
            said = Attached(request.number, self.id, False)
            self.world.network.send_once(self.name, request.client, said)

    def next_letter(self) -> int:
        """Return a number for a request of this node's own."""
        self._letters += 1
        return self._letters

    def step_lender(self, lender: Lender, at: int) -> None:
        """Let a lender do what it planned for this time."""
        if not lender.is_due(at):
            return
        if self._paused:
            self._backlog.append((self.step_lender, (lender, at)))
            return
        with self._surviving:
            lender.step()
            self._drive()

    def tell_lender(self, lender: Lender, action: Callable[[Any], None] | None, fact: Any) -> None:
        """Let a lender hear of something, unless it is over; without an action, look at all."""
        if lender.is_over:
            return
        if self._paused:
            self._backlog.append((self.tell_lender, (lender, action, fact)))
            return
        with self._surviving:
            if action is None:
                lender.touch_all()
            else:
                action(fact)
            self._drive()
