"""Three Raft cores in one process, without I/O: what a committed entry costs.

    python -m benchmarks.micro.raft

Each round proposes a number of entries at the leader and passes messages until all three
replicas have applied them: two appends and two acknowledgements, then the commit index and its
acknowledgements, and six or more Readys. Storage is memory; what is measured is the core and the
smallest driver that does its bidding, in seconds of CPU, so that neighbours on the machine count
little.

The baseline is the floor under any sans-IO core in Python: building the same messages, entries
and Readys and passing them around without deciding anything. The last two parts look for what
grows with the log: rounds while it grows, and a follower that was away and catches up with all
of it, in messages of 16 entries. Flat means that nothing in the core depends on its length.
"""

from __future__ import annotations

import argparse
import gc
from time import process_time
from typing import TYPE_CHECKING

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    APPEND_THREAD,
    APPLY_THREAD,
    ENTRY_OVERHEAD_BYTES,
    NO_LIMIT,
    Config,
    ConfState,
    Entry,
    HardState,
    MemoryStorage,
    Message,
    MessageKind,
    RaftNode,
    Ready,
    Snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable

VOTERS = (ReplicaId(1), ReplicaId(2), ReplicaId(3))
DATA = b"x" * 100


class Trio:
    """Three replicas, driven to a standstill after each proposal."""

    def __init__(self, *, asynchronous: bool, message_bytes_max: int = 1 << 20) -> None:
        start = Snapshot(Index(1), Term(1), ConfState(voters=VOTERS))
        self.storages = [MemoryStorage(start) for _ in VOTERS]
        self.nodes = [
            RaftNode(
                Config(
                    id=voter,
                    applied=Index(1),
                    async_storage_writes=asynchronous,
                    uncommitted_bytes_max=NO_LIMIT,
                    message_bytes_max=message_bytes_max,
                ),
                storage,
                jitter=lambda _: 0,
            )
            for voter, storage in zip(VOTERS, self.storages, strict=True)
        ]
        self._drive = self._drive_async if asynchronous else self._drive_sync
        self.leader = self.nodes[0]
        self.away: ReplicaId | None = None
        """Who gets no messages."""
        self.leader.campaign()
        self.settle()
        assert self.leader.is_leader

    def commit(self, entries: list[bytes]) -> None:
        """Propose `entries` and wait until everybody has applied them."""
        self.leader.propose(entries)
        self.settle()

    def settle(self) -> None:
        """Handle Readys and deliver messages until there is nothing left to do."""
        nodes, drive = self.nodes, self._drive
        busy = True
        while busy:
            busy = False
            for node, storage in zip(nodes, self.storages, strict=True):
                if node.has_ready():
                    busy = True
                    drive(node, storage)

    def _drive_sync(self, node: RaftNode, storage: MemoryStorage) -> None:
        ready = node.ready()
        if ready.hard_state is not None:
            storage.set_hard_state(ready.hard_state)
        storage.append(ready.entries)
        node.advance()
        nodes = self.nodes
        for message in ready.messages:
            if message.to != self.away:
                nodes[message.to - 1].step(message)

    def _drive_async(self, node: RaftNode, storage: MemoryStorage) -> None:
        nodes = self.nodes
        for message in node.ready().messages:
            if message.to == APPEND_THREAD:
                if message.term:
                    storage.set_hard_state(HardState(message.term, message.vote, message.commit))
                storage.append(message.entries)
            elif message.to != APPLY_THREAD:
                if message.to != self.away:
                    nodes[message.to - 1].step(message)
                continue
            for response in message.responses:
                nodes[response.to - 1].step(response)


def bare_values(count: int) -> None:
    """Build what one round of `count` entries consists of, and decide nothing."""
    term = Term(2)
    leader, *followers = VOTERS
    entries = tuple([Entry(term, Index(i), DATA) for i in range(count)])
    for follower in followers:
        for index in (Index(1), Index(2)):
            Message(
                kind=MessageKind.APPEND,
                to=follower,
                sender=leader,
                term=term,
                log_term=term,
                index=index,
                entries=entries,
                commit=index,
            )
            Message(
                kind=MessageKind.APPEND_RESPONSE,
                to=leader,
                sender=follower,
                term=term,
                index=index,
            )
    for _ in VOTERS:
        Ready(entries=entries, must_sync=True)
        Ready(hard_state=HardState(term, leader, Index(2)), committed=entries)


def seconds_per_round(action: Callable[[], None], rounds: int) -> float:
    """Return the best of three runs of `rounds`, by the round."""
    best = float("inf")
    for _ in range(3):
        gc.collect()
        began = process_time()
        for _ in range(rounds):
            action()
        best = min(best, process_time() - began)
    return best / rounds


def report(label: str, seconds: float, entries: int, baseline: float) -> None:
    """Print one line of results."""
    micros = seconds * 1e6
    print(
        f"{label:<28}{entries / seconds:>12,.0f}{micros:>12.1f}{micros / entries:>12.2f}"
        f"{seconds / baseline:>12.1f}"
    )


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--grow-to", type=int, default=100_000, help="entries in the log")
    options = parser.parse_args()

    print(f"{'':<28}{'entries/s':>12}{'µs/round':>12}{'µs/entry':>12}{'x floor':>12}")
    for count in (1, 64):
        payload = [DATA] * count
        rounds = max(options.rounds // (1 if count == 1 else 8), 1)
        floor = seconds_per_round(lambda: bare_values(count), rounds)  # noqa: B023
        report(f"floor, {count} per Ready", floor, count, floor)
        for asynchronous in (False, True):
            trio = Trio(asynchronous=asynchronous)
            mode = "async" if asynchronous else "sync"
            seconds = seconds_per_round(lambda: trio.commit(payload), rounds)  # noqa: B023
            report(f"{mode}, {count} per Ready", seconds, count, floor)

    grow(options.grow_to)
    for length in (options.grow_to // 10, options.grow_to):
        catch_up(length)


def grow(length: int) -> None:
    """Print what an entry costs while the log grows to `length`."""
    print("\nas the log grows (async, 64 per Ready)")
    trio = Trio(asynchronous=True)
    steps = 10
    rounds = max(length // steps // 64, 1)
    for _ in range(steps):
        began = process_time()
        for _ in range(rounds):
            trio.commit([DATA] * 64)
        micros = (process_time() - began) * 1e6 / (rounds * 64)
        print(f"  {trio.leader.last_index:>8,} entries: {micros:6.2f} µs/entry")


def catch_up(length: int) -> None:
    """Print what an entry costs that a follower missed, when it missed `length`."""
    entry = len(DATA) + ENTRY_OVERHEAD_BYTES
    trio = Trio(asynchronous=True, message_bytes_max=16 * entry)
    trio.away = VOTERS[2]
    for _ in range(length // 64):
        trio.commit([DATA] * 64)
    trio.away = None
    began = process_time()
    while trio.nodes[2].last_index < trio.leader.last_index:
        trio.leader.tick()
        trio.settle()
    micros = (process_time() - began) * 1e6 / length
    print(f"a follower catches up with {length:,} entries: {micros:.2f} µs/entry")


if __name__ == "__main__":
    main()
