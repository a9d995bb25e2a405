"""Random schedules: messages lost, doubled and reordered, disks slow, replicas crashing.

After every step the properties of the paper's figure 3 are checked over everything that ever
happened. A failing seed is in the test's name.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.unit.raft.cluster import Cluster

from angarium.ids import ReplicaId
from angarium.raft import Change, ChangeKind, ConfChange, MessageKind, RaftError

if TYPE_CHECKING:
    from angarium.raft import Entry

STEPS = 5000
SEEDS = 16


class Checker:
    """Remembers what was ever true of a group, and notices contradictions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._leaders: dict[int, int] = {}
        self._applied: dict[int, tuple[int, bytes]] = {}
        self.elections = 0
        self.commits = 0

    def check(self) -> None:
        for replica, member in self._cluster.replicas.items():
            if not member.is_up:
                continue
            node = member.node
            assert node.applied <= node.commit <= node.last_index
            if node.is_leader:
                known = self._leaders.setdefault(node.term, replica)
                assert known == replica, f"two leaders in term {node.term}"
            for entry in member.applied:
                self._check_applied(entry)
        self.elections, self.commits = len(self._leaders), len(self._applied)

    def _check_applied(self, entry: Entry) -> None:
        what = (entry.term, bytes(entry.data))
        known = self._applied.setdefault(entry.index, what)
        assert known == what, f"two entries applied at index {entry.index}"

    def check_logs_match(self) -> None:
        """Logs that agree on an entry agree on all before it (log matching)."""
        logs = [
            {e.index: (e.term, bytes(e.data)) for e in member.entries()}
            for member in self._cluster.replicas.values()
            if member.is_up
        ]
        for one in logs:
            for other in logs:
                shared = sorted(set(one) & set(other), reverse=True)
                agree = False
                for index in shared:
                    agree = agree or one[index][0] == other[index][0]
                    assert not agree or one[index] == other[index]


class Schedule:
    """What may happen at random, and how often: mostly work, now and then mischief."""

    def __init__(self, cluster: Cluster, dice: random.Random) -> None:
        self._cluster, self._dice = cluster, dice
        self._proposals = 0
        weighted = {
            self._deliver: 500,
            self._handle_ready: 200,
            self._write: 100,
            self._apply: 80,
            self._tick: 50,
            self._propose: 45,
            self._crash: 3,
            self._restart: 7,
            self._cut_or_heal: 5,
            self._transfer: 3,
            self._change_members: 7,
        }
        self._actions, self._weights = list(weighted), list(weighted.values())

    def step(self) -> None:
        """Do one random thing to one replica that is up."""
        replicas = self._cluster.replicas
        up = [i for i, member in replicas.items() if member.is_up]
        if not up:
            self._restart(0)
            return
        (action,) = self._dice.choices(self._actions, self._weights)
        action(self._dice.choice(up))

    def _deliver(self, _: int) -> None:
        """Deliver one of the older messages; lose it or keep a copy now and then."""
        in_flight, dice = self._cluster.in_flight, self._dice
        if in_flight:
            message = in_flight.pop(dice.randrange(min(len(in_flight), 6)))
            if dice.random() < 0.05:
                in_flight.append(message)
            if dice.random() > 0.03:
                self._cluster.deliver_one(message)

    def _handle_ready(self, replica: int) -> None:
        self._cluster.handle_ready(replica)

    def _write(self, replica: int) -> None:
        if self._cluster.replicas[replica].append_work:
            self._cluster.handle_append(replica)

    def _apply(self, replica: int) -> None:
        if self._cluster.replicas[replica].apply_work:
            self._cluster.handle_apply(replica)

    def _tick(self, replica: int) -> None:
        self._cluster.tick(replica)

    def _propose(self, replica: int) -> None:
        self._proposals += 1
        with suppress(RaftError):
            data = [b"%d" % self._proposals] * self._dice.randint(1, 3)
            self._cluster[replica].propose(data)

    def _crash(self, replica: int) -> None:
        self._cluster.crash(replica)

    def _restart(self, _: int) -> None:
        for replica, member in self._cluster.replicas.items():
            if not member.is_up:
                self._cluster.restart(replica)

    def _cut_or_heal(self, _: int) -> None:
        self._cluster.heal()
        if self._dice.random() < 0.3:
            self._cluster.isolate(*self._dice.sample(sorted(self._cluster.replicas), 2))

    def _transfer(self, replica: int) -> None:
        self._cluster[replica].transfer_leader(self._anybody())

    def _change_members(self, replica: int) -> None:
        kinds = [ChangeKind.ADD_VOTER, ChangeKind.ADD_LEARNER, ChangeKind.REMOVE]
        changes = [
            Change(self._dice.choice(kinds), self._anybody())
            for _ in range(self._dice.randint(1, 2))
        ]
        with suppress(RaftError):
            self._cluster[replica].propose_conf_change(ConfChange(tuple(changes)))

    def _anybody(self) -> ReplicaId:
        return ReplicaId(self._dice.choice(sorted(self._cluster.replicas)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_safety_holds_whatever_happens(seed: int) -> None:
    """Figure 3: election safety, log matching, state machine safety; with restarts."""
    dice = random.Random(seed)
    cluster = Cluster(
        5,
        election_ticks=5,
        async_storage_writes=bool(seed % 4),
        pre_vote=bool(seed % 2),
        check_quorum=seed % 3 == 0,
        message_bytes_max=dice.choice([0, 60, 1 << 20]),
        inflight_messages_max=dice.choice([1, 3, 256]),
        jitter=dice.randrange,
    )
    checker = Checker(cluster)
    schedule = Schedule(cluster, dice)
    for step in range(STEPS):
        schedule.step()
        if step % 10 == 0:
            checker.check()
        if step % 250 == 0:
            checker.check_logs_match()
    _let_it_heal(cluster)
    checker.check()
    checker.check_logs_match()
    assert checker.elections >= 1
    assert checker.commits >= 10, "a schedule in which nothing happens shows nothing"


def _let_it_heal(cluster: Cluster) -> None:
    """Restart everybody, connect them, and expect that they agree on something new."""
    cluster.heal()
    cluster.held = set[MessageKind]()
    for replica, member in cluster.replicas.items():
        if not member.is_up:
            cluster.restart(replica)
    cluster.settle()
    for _ in range(300):
        for replica in cluster.replicas:
            cluster.tick(replica)
        cluster.settle()
        for member in cluster.replicas.values():
            node = member.node
            if node.is_leader:
                with suppress(RaftError):
                    node.propose([b"after"])
                cluster.settle()
                if b"after" in member.data():
                    return
    raise AssertionError("a healed group makes no progress")
