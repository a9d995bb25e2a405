"""A Raft group in memory whose messages, disks and lives are in a test's hands."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    APPEND_THREAD,
    APPLY_THREAD,
    Config,
    ConfState,
    Entry,
    EntryKind,
    HardState,
    MemoryStorage,
    Message,
    MessageKind,
    RaftError,
    RaftNode,
    ReadState,
    Snapshot,
    decode_conf_change,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class LiveStorage(MemoryStorage):
    """A storage whose newest snapshot is the machine's present state, once there is one."""

    live: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        return self.live or super().snapshot()


class Replica:
    """A core, its disk (which outlives it), and a machine that remembers what it applied."""

    def __init__(self, config: Config, snapshot: Snapshot, jitter: Callable[[int], int]) -> None:
        self.config = config
        self.jitter = jitter
        self.storage = LiveStorage(snapshot)
        self.applied: list[Entry] = []
        self.read_states: list[ReadState] = []
        self.snapshots: list[Snapshot] = []
        self.append_work: deque[Message] = deque()
        self.apply_work: deque[Message] = deque()
        self.is_up = True
        self.start()

    def start(self) -> None:
        """Start from what is on disk; the machine is rebuilt from the snapshot."""
        self.is_up = True
        self.append_work.clear()
        self.apply_work.clear()
        self.applied = []
        self.storage.live = None
        self.conf_state = self.storage.initial_state()[1]
        self.node = RaftNode(self.config, self.storage, jitter=self.jitter)

    def write(self, hard_state: HardState | None, entries: Sequence[Entry]) -> None:
        if hard_state is not None:
            self.storage.set_hard_state(hard_state)
        self.storage.append(entries)

    def install(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.storage.apply_snapshot(snapshot)
            self.snapshots.append(snapshot)
            self.conf_state = snapshot.conf_state
            self.storage.live = snapshot

    def apply(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.kind is not EntryKind.NORMAL:
                self.conf_state = self.node.apply_conf_change(decode_conf_change(entry))
            self.applied.append(entry)
            before = self.storage.snapshot()
            data = bytes(before.data) + bytes(entry.data) * (entry.kind is EntryKind.NORMAL)
            self.storage.live = Snapshot(entry.index, entry.term, self.conf_state, data)

    def data(self) -> list[bytes]:
        """Return what the machine has applied, without empty entries."""
        return [bytes(e.data) for e in self.applied if e.data and e.kind is EntryKind.NORMAL]

    def log(self) -> list[tuple[int, bytes]]:
        """Return (term, data) of every entry this replica holds, written or not."""
        return [(e.term, bytes(e.data)) for e in self.entries()]

    def entries(self) -> tuple[Entry, ...]:
        """Return every entry this replica holds, written or not."""
        return self.node.entries_after(Index(self.node._core.log.first_index() - 1))


class Cluster:
    """Replicas with ids from 1, and the messages between them."""

    def __init__(
        self,
        size: int = 3,
        *,
        learners: Sequence[int] = (),
        index: int = 1,
        jitter: Callable[[int], int] | None = None,
        **settings: Any,
    ) -> None:
        self._jitter = jitter
        ids = [ReplicaId(i) for i in range(1, size + 1)]
        self._settings: dict[str, Any] = {
            "election_ticks": 10,
            "async_storage_writes": False,
            "pre_vote": False,
            "check_quorum": False,
            **settings,
        }
        self.start = Snapshot(
            Index(index),
            Term(1),
            ConfState(
                voters=tuple(i for i in ids if i not in learners),
                learners=tuple(ReplicaId(i) for i in learners),
            ),
        )
        self.replicas: dict[int, Replica] = {}
        self.in_flight: list[Message] = []
        self.cut: set[tuple[int, int]] = set()
        self.held: set[MessageKind] = set()
        """Kinds of messages that stay in flight until released."""
        for replica in ids:
            self.add(replica, self.start)

    def __getitem__(self, replica: int) -> RaftNode:
        return self.replicas[replica].node

    def add(self, replica: int, snapshot: Snapshot | None = None) -> None:
        """Put a replica into the world; an empty one knows no group yet."""
        config = Config(id=ReplicaId(replica), **self._settings)
        jitter = self._jitter or (lambda _: replica - 1)
        self.replicas[replica] = Replica(config, snapshot or Snapshot(), jitter)

    # --- what happens -----------------------------------------------------------------------

    def elect(self, replica: int) -> RaftNode:
        """Make `replica` the leader and let the group settle."""
        self[replica].campaign()
        self.settle()
        assert self[replica].is_leader
        return self[replica]

    def propose(self, replica: int, *data: bytes) -> None:
        """Propose at `replica` and let the group settle."""
        self[replica].propose(list(data))
        self.settle()

    def tick(self, replica: int, ticks: int = 1) -> None:
        """Let time pass for one replica."""
        for _ in range(ticks):
            self[replica].tick()

    def isolate(self, *replicas: int) -> None:
        """Cut these replicas off from all others, but not from each other."""
        inside = set(replicas)
        for one in self.replicas:
            for other in self.replicas:
                if (one in inside) != (other in inside):
                    self.cut.add((one, other))

    def heal(self) -> None:
        """Connect everybody again."""
        self.cut.clear()

    def crash(self, replica: int) -> None:
        """Lose all that is not on disk."""
        self.replicas[replica].is_up = False

    def restart(self, replica: int) -> RaftNode:
        """Start from disk."""
        self.replicas[replica].start()
        return self[replica]

    # --- how it is driven --------------------------------------------------------------------

    def settle(self) -> None:
        """Handle Readys, disks and messages until nothing more happens."""
        for _ in range(1000):
            busy = [self.handle(i) for i in self.replicas] + [self.deliver()]
            if not any(busy):
                return
        raise AssertionError("the group does not come to rest")

    def handle(self, replica: int) -> bool:
        """Handle everything one replica wants done; return whether there was anything."""
        member = self.replicas[replica]
        busy = False
        while member.is_up and (member.node.has_ready() or member.append_work):
            busy = True
            self.handle_ready(replica)
            while member.append_work:
                self.handle_append(replica)
            while member.apply_work:
                self.handle_apply(replica)
        return busy

    def handle_ready(self, replica: int) -> None:
        """Handle one Ready; in asynchronous mode, only queue what the threads should do."""
        member = self.replicas[replica]
        if not member.node.has_ready():
            return
        ready = member.node.ready()
        member.read_states += ready.read_states
        for message in ready.messages:
            if message.to == APPEND_THREAD:
                member.append_work.append(message)
            elif message.to == APPLY_THREAD:
                member.apply_work.append(message)
            else:
                self.in_flight.append(message)
        if not member.config.async_storage_writes:
            member.write(ready.hard_state, ready.entries)
            member.install(ready.snapshot)
            member.apply(ready.committed)
            member.node.advance()

    def handle_append(self, replica: int) -> None:
        """Let the append thread do its next task."""
        member = self.replicas[replica]
        task = member.append_work.popleft()
        hard_state = HardState(task.term, task.vote, task.commit)
        member.write(hard_state if hard_state != HardState() else None, task.entries)
        member.install(task.snapshot)
        self._respond(member, task)

    def handle_apply(self, replica: int) -> None:
        """Let the apply thread do its next task."""
        member = self.replicas[replica]
        task = member.apply_work.popleft()
        member.apply(task.entries)
        self._respond(member, task)

    def deliver(self) -> bool:
        """Deliver every message that is not held; return whether there was any."""
        waiting = self.in_flight
        self.in_flight = [m for m in waiting if m.kind in self.held]
        delivered = [m for m in waiting if m.kind not in self.held]
        for message in delivered:
            self.deliver_one(message)
        return bool(delivered)

    def deliver_one(self, message: Message) -> None:
        """Deliver one message, or lose it where the line is cut or nobody is there."""
        target = self.replicas.get(message.to)
        if target is None or not target.is_up or (message.sender, message.to) in self.cut:
            return
        with suppress(RaftError):
            target.node.step(message)

    def _respond(self, member: Replica, task: Message) -> None:
        for response in task.responses:
            if response.to != member.node.id:
                self.in_flight.append(response)
            else:
                with suppress(RaftError):
                    member.node.step(response)


def sent(messages: Iterable[Message], kind: MessageKind) -> list[Message]:
    """Return the messages of one kind."""
    return [m for m in messages if m.kind is kind]


def a_replica(
    replica: int = 1,
    voters: Sequence[int] = (1, 2, 3),
    *,
    log: Sequence[int] = (),
    term: int | None = None,
    vote: int = 0,
    commit: int = 0,
    **settings: Any,
) -> Replica:
    """Return a lone replica whose log has entries of these terms, from index 1 on."""
    config = Config(
        id=ReplicaId(replica),
        **{"async_storage_writes": False, "pre_vote": False, "check_quorum": False, **settings},
    )
    start = Snapshot(Index(0), Term(0), ConfState(voters=tuple(map(ReplicaId, voters))))
    member = Replica.__new__(Replica)
    member.storage = LiveStorage(start)
    member.storage.append([Entry(Term(t), Index(i)) for i, t in enumerate(log, start=1)])
    last_term = log[-1] if log else 0
    member.storage.set_hard_state(
        HardState(Term(last_term if term is None else term), ReplicaId(vote), Index(commit))
    )
    member.config, member.jitter = config, lambda _: 0
    member.read_states, member.snapshots = [], []
    member.append_work, member.apply_work = deque(), deque()
    member.start()
    return member


def flush(member: Replica) -> list[Message]:
    """Handle everything a lone synchronous replica wants done; return what it would send."""
    messages: list[Message] = []
    while member.node.has_ready():
        ready = member.node.ready()
        member.write(ready.hard_state, ready.entries)
        member.install(ready.snapshot)
        member.apply(ready.committed)
        member.read_states += ready.read_states
        messages += ready.messages
        member.node.advance()
    return messages
