"""The peer's interaction scripts: a small cluster of our cores, driven by commands."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import msgspec
from tests.conformance.adapter.printing import (
    LOG_LEVELS,
    MESSAGE_KINDS,
    ROLES,
    TRANSITIONS,
    describe_entry,
    describe_message,
    describe_progress,
    describe_ready,
    error_text,
    parse_changes,
)
from tests.conformance.datadriven import Directive, directive_of

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    APPEND_THREAD,
    APPLY_THREAD,
    NO_LIMIT,
    Change,
    ConfChange,
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
    Snapshot,
    decode_conf_change,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class HistoryStorage(MemoryStorage):
    """A storage whose newest snapshot is always the machine's present state."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.machine = snapshot

    def snapshot(self) -> Snapshot:
        return self.machine


class Node:
    """A core with its storage, its storage threads' queues, and a machine that concatenates."""

    def __init__(self, config: Config, snapshot: Snapshot) -> None:
        self.config = config
        self.storage = HistoryStorage(snapshot)
        self.raft = RaftNode(config, self.storage, jitter=lambda _: 0)
        self.append_work: deque[Message] = deque()
        self.apply_work: deque[Message] = deque()

    def write(
        self, hard_state: HardState | None, entries: Sequence[Entry], snapshot: Snapshot | None
    ) -> None:
        if hard_state is not None:
            self.storage.set_hard_state(hard_state)
        if snapshot is not None:
            assert not entries, "a snapshot comes alone"
            self.storage.apply_snapshot(snapshot)
        self.storage.append(entries)

    def apply(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            machine = self.storage.machine
            conf_state, update = machine.conf_state, bytes(entry.data)
            if entry.kind is not EntryKind.NORMAL:
                change = decode_conf_change(entry)
                conf_state = self.raft.apply_conf_change(change)
                update = change.context
            self.storage.machine = Snapshot(
                entry.index, entry.term, conf_state, bytes(machine.data) + update
            )


class InteractionScript:
    """One file's environment: nodes with ids from 1, messages in flight, what is printed."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._in_flight: list[Message] = []
        self._printed: list[str] = []
        self._indent = ""
        self._level = "DEBUG"

    def run(self, directive: Directive) -> str:
        """Return what one directive prints."""
        self._printed = []
        commands = [directive]
        if directive.command != "propose-conf-change":  # elsewhere, input is more commands
            commands += [directive_of(line) for line in directive.input.splitlines()]
        for command in commands:
            try:
                self._handler(command.command)(command)
            except RaftError as error:
                self._printed.append(error_text(error))  # even where the rest is silent
        return "\n".join(self._printed) or "ok"

    def _handler(self, command: str) -> Callable[[Directive], None]:
        name = "_do_" + command.strip("_").replace("-", "_")
        if not hasattr(self, name):
            raise NotImplementedError(f"the command {command!r} is not known here")
        return cast("Callable[[Directive], None]", getattr(self, name))

    # --- output ----------------------------------------------------------------------------

    def _print(self, text: str) -> None:
        if self._level != "NONE":
            self._printed += [self._indent + line for line in text.splitlines()]

    def _set_level(self, level: str) -> None:
        assert level.upper() in LOG_LEVELS, f"{level} is no log level"
        self._level = level.upper()

    @contextmanager
    def _section(self, title: str | None) -> Iterator[None]:
        """Indent what is printed within, under a title; without one, change nothing."""
        if title is None:
            yield
            return
        self._print(f"> {title}")
        self._indent += "  "
        yield
        self._indent = self._indent[:-2]

    # --- commands --------------------------------------------------------------------------

    def _do_breakpoint(self, d: Directive) -> None:
        pass

    def _do_log_level(self, d: Directive) -> None:
        self._set_level(d.names[0])

    def _do_add_nodes(self, d: Directive) -> None:
        def flag(name: str) -> bool:
            return d.option(name, "false") in {"true", "t", "1", "T", "TRUE", "True"}

        def number(name: str, default: int) -> int:
            return int(d.option(name, str(default)))

        known = {
            "voters", "learners", "index", "content", "inflight", "async-storage-writes",
            "prevote", "checkquorum", "max-committed-size-per-ready",
            "disable-conf-change-validation", "read-only", "step-down-on-removal",
        }  # fmt: skip
        if unknown := set(d.options) - known:
            raise NotImplementedError(f"add-nodes options {sorted(unknown)} are not known here")
        snapshot = Snapshot()
        if {"voters", "learners", "index", "content"} & set(d.options):
            snapshot = Snapshot(
                index=Index(number("index", 0)),
                term=Term(1),
                conf_state=ConfState(
                    voters=tuple(ReplicaId(int(i)) for i in d.options.get("voters", ())),
                    learners=tuple(ReplicaId(int(i)) for i in d.options.get("learners", ())),
                ),
                data=d.option("content", "").encode(),
            )
        for _ in range(int(d.names[0])):
            config = Config(
                id=ReplicaId(len(self._nodes) + 1),
                election_ticks=3,
                heartbeat_ticks=1,
                applied=Index(number("index", 0)),
                async_storage_writes=flag("async-storage-writes"),
                message_bytes_max=NO_LIMIT,
                applying_bytes_max=number("max-committed-size-per-ready", NO_LIMIT),
                uncommitted_bytes_max=NO_LIMIT,
                inflight_messages_max=number("inflight", NO_LIMIT),
                inflight_bytes_max=NO_LIMIT,
                check_quorum=flag("checkquorum"),
                pre_vote=flag("prevote"),
                lease_reads=d.option("read-only", "safe") == "lease-based",
                validate_conf_changes=not flag("disable-conf-change-validation"),
                step_down_on_removal=flag("step-down-on-removal"),
                votes_tell_commit=False,  # the peer's do not
            )
            self._nodes.append(Node(config, snapshot))

    def _do_campaign(self, d: Directive) -> None:
        self._node(d.names[0]).raft.campaign()

    def _do_propose(self, d: Directive) -> None:
        self._node(d.names[0]).raft.propose([d.names[1].encode()])

    def _do_propose_conf_change(self, d: Directive) -> None:
        changes = parse_changes(d.input)
        change: Change | ConfChange
        if d.option("v1", "false") == "true":
            (change,) = changes
        else:
            transition = TRANSITIONS[d.option("transition", "auto")]
            change = ConfChange(changes, transition)
        self._node(d.names[0]).raft.propose_conf_change(change)

    def _do_forget_leader(self, d: Directive) -> None:
        self._node(d.names[0]).raft.forget_leader()

    def _do_transfer_leadership(self, d: Directive) -> None:
        to = ReplicaId(int(d.options["to"][0]))
        self._node(d.options["from"][0]).raft.transfer_leader(to)

    def _do_report_unreachable(self, d: Directive) -> None:
        self._node(d.names[0]).raft.report_unreachable(ReplicaId(int(d.names[1])))

    def _do_send_snapshot(self, d: Directive) -> None:
        source = self._node(d.names[0])
        message = Message(
            kind=MessageKind.SNAPSHOT,
            to=ReplicaId(int(d.names[1])),
            sender=source.raft.id,
            term=source.raft.term,
            snapshot=source.storage.snapshot(),
        )
        self._in_flight.append(message)
        self._print(describe_message(message))

    def _do_tick_heartbeat(self, d: Directive) -> None:
        node = self._node(d.names[0])
        for _ in range(node.config.heartbeat_ticks):
            node.raft.tick()

    def _do_tick_election(self, d: Directive) -> None:
        node = self._node(d.names[0])
        for _ in range(node.config.election_ticks):
            node.raft.tick()

    def _do_set_randomized_election_timeout(self, d: Directive) -> None:
        self._node(d.names[0]).raft._core.election_timeout = int(d.options["timeout"][0])

    def _do_raft_state(self, d: Directive) -> None:
        for node in self._nodes:
            raft = node.raft
            voters = (*raft.conf_state.voters, *raft.conf_state.voters_outgoing)
            voter = "Voter" if raft.id in voters else "Non-Voter"
            self._print(
                f"{raft.id}: {ROLES[raft.role]} ({voter}) Term:{raft.term} Lead:{raft.leader}"
            )

    def _do_raft_log(self, d: Directive) -> None:
        storage = self._node(d.names[0]).storage
        first, last = storage.first_index(), storage.last_index()
        if last < first:
            self._print(f"log is empty: first index={first}, last index={last}")
            return
        for entry in storage.entries(first, Index(last + 1), NO_LIMIT):
            self._print(describe_entry(entry))

    def _do_status(self, d: Directive) -> None:
        for replica, view in self._node(d.names[0]).raft.status().progress.items():
            self._print(describe_progress(replica, view))

    def _do_compact(self, d: Directive) -> None:
        self._node(d.names[0]).storage.compact(Index(int(d.names[1])))
        self._do_raft_log(d)

    def _do_process_ready(self, d: Directive) -> None:
        for name in d.names:
            with self._section(f"{name} handling Ready" if len(d.names) > 1 else None):
                self._process_ready(self._node(name))

    def _do_process_append_thread(self, d: Directive) -> None:
        for name in d.names:
            title = f"{name} processing append thread" if len(d.names) > 1 else None
            with self._section(title):
                self._process_append(self._node(name))

    def _do_process_apply_thread(self, d: Directive) -> None:
        for name in d.names:
            title = f"{name} processing apply thread" if len(d.names) > 1 else None
            with self._section(title):
                self._process_apply(self._node(name))

    def _do_deliver_msgs(self, d: Directive) -> None:
        kind = d.options.get("type", (None,))[0]
        recipients = [(ReplicaId(int(name)), False) for name in d.names]
        recipients += [(ReplicaId(int(name)), True) for name in d.options.get("drop", ())]
        handled = [self._deliver(to, drop=drop, kind=kind) for to, drop in recipients]
        if not sum(handled):
            self._print("no messages")

    def _do_stabilize(self, d: Directive) -> None:
        level = self._level
        if "log-level" in d.options:
            self._set_level(d.option("log-level", ""))
        nodes = [self._node(name) for name in d.names] or self._nodes
        while self._stabilize_once(nodes):
            pass
        self._level = level

    # --- the cluster around the nodes ---------------------------------------------------------

    def _node(self, name: str) -> Node:
        return self._nodes[int(name) - 1]

    def _stabilize_once(self, nodes: Sequence[Node]) -> bool:
        busy = False
        for node in nodes:
            if node.raft.has_ready():
                busy = True
                with self._section(f"{node.raft.id} handling Ready"):
                    self._process_ready(node)
        for node in nodes:
            if any(m.to == node.raft.id for m in self._in_flight):
                busy = True
                with self._section(f"{node.raft.id} receiving messages"):
                    self._deliver(node.raft.id)
        for node in nodes:
            if node.append_work:
                busy = True
                with self._section(f"{node.raft.id} processing append thread"):
                    while node.append_work:
                        self._process_append(node)
        for node in nodes:
            if node.apply_work:
                busy = True
                with self._section(f"{node.raft.id} processing apply thread"):
                    while node.apply_work:
                        self._process_apply(node)
        return busy

    def _process_ready(self, node: Node) -> None:
        ready = node.raft.ready()
        self._print(describe_ready(ready))
        is_async = node.config.async_storage_writes
        if not is_async:
            node.write(ready.hard_state, ready.entries, ready.snapshot)
            node.apply(ready.committed)
        for message in ready.messages:
            if message.to == APPEND_THREAD:
                node.append_work.append(message)
            elif message.to == APPLY_THREAD:
                node.apply_work.append(message)
            else:
                self._in_flight.append(message)
        if not is_async:
            node.raft.advance()

    def _process_append(self, node: Node) -> None:
        if not node.append_work:
            self._print("no append work to perform")
            return
        task = node.append_work.popleft()
        self._announce(task)
        hard_state = HardState(task.term, task.vote, task.commit)
        node.write(None if hard_state == HardState() else hard_state, task.entries, task.snapshot)
        self._respond(task)

    def _process_apply(self, node: Node) -> None:
        if not node.apply_work:
            self._print("no apply work to perform")
            return
        task = node.apply_work.popleft()
        self._announce(task)
        node.apply(task.entries)
        self._respond(task)

    def _announce(self, task: Message) -> None:
        self._print("Processing:")
        self._print(describe_message(msgspec.structs.replace(task, responses=())))

    def _respond(self, task: Message) -> None:
        self._print("Responses:")
        for response in task.responses:
            self._print(describe_message(response))
        self._in_flight += task.responses

    def _deliver(self, to: ReplicaId, *, drop: bool = False, kind: str | None = None) -> int:
        def is_meant(m: Message) -> bool:
            local = m.sender == m.to or m.sender in (APPEND_THREAD, APPLY_THREAD)
            return (
                m.to == to
                and not (drop and local)  # a storage thread's word is never lost
                and (kind is None or MESSAGE_KINDS[m.kind] == kind)
            )

        meant = [m for m in self._in_flight if is_meant(m)]
        self._in_flight = [m for m in self._in_flight if not is_meant(m)]
        for message in meant:
            self._print(("dropped: " if drop else "") + describe_message(message))
            if not drop:
                try:
                    self._node(str(to)).raft.step(message)
                except RaftError as error:
                    self._print(error_text(error))
        return len(meant)
