"""The Raft paper on log compaction (section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.raft.cluster import Cluster, a_replica, flush, sent

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    ConfState,
    HardState,
    Message,
    MessageKind,
    ProgressState,
    Snapshot,
    SnapshotTemporarilyUnavailable,
)

if TYPE_CHECKING:
    import pytest

VOTERS = ConfState(voters=(ReplicaId(1), ReplicaId(2), ReplicaId(3)))


def _compact(cluster: Cluster, replica: int, index: int) -> None:
    member = cluster.replicas[replica]
    member.storage.create_snapshot(Index(index), conf_state=member.conf_state)
    member.storage.compact(Index(index))


def _behind_after_compaction() -> Cluster:
    """Return a group in which 3 needs entries that 1, the leader, no longer has."""
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(3)
    for data in (b"a", b"b", b"c"):
        cluster.propose(1, data)
    _compact(cluster, 1, cluster[1].last_index)
    cluster.heal()
    return cluster


def _install(snapshot: Snapshot, term: int) -> Message:
    return Message(
        kind=MessageKind.SNAPSHOT,
        to=ReplicaId(1),
        sender=ReplicaId(2),
        term=Term(term),
        snapshot=snapshot,
    )


def test_a_follower_too_far_behind_gets_a_snapshot() -> None:
    """Section 7: the leader sends snapshots to followers that lag behind what it discarded."""
    cluster = _behind_after_compaction()
    cluster.tick(1)
    cluster.settle()
    assert [s.data for s in cluster.replicas[3].snapshots] == [b"abc"]
    cluster.propose(1, b"d")
    assert cluster.replicas[3].data() == [b"d"]
    assert cluster[3].commit == cluster[1].commit


def test_a_snapshot_replaces_a_log_that_does_not_contain_it() -> None:
    """Section 7: new information: the follower discards its entire log."""
    member = a_replica(log=[1, 1, 2], term=2, commit=1)
    member.node.step(_install(Snapshot(Index(5), Term(3), VOTERS, b"s"), 3))
    (answer,) = sent(flush(member), MessageKind.APPEND_RESPONSE)
    assert (answer.index, answer.reject) == (5, False)
    assert (member.node.last_index, member.node.commit, member.node.applied) == (5, 5, 5)
    assert member.entries() == ()
    assert member.storage.first_index() == 6


def test_a_snapshot_that_describes_a_prefix_keeps_what_follows() -> None:
    """Section 7: entries covered are dropped later, entries following the snapshot are retained."""
    member = a_replica(log=[1, 2, 2, 2], term=2, commit=1)
    member.node.step(_install(Snapshot(Index(3), Term(2), VOTERS), 2))
    ready = member.node.ready()
    assert ready.snapshot is None
    assert member.node.last_index == 4
    assert member.node.commit == 3


def test_an_old_snapshot_is_ignored() -> None:
    """Section 7: a retransmitted or late one must not take the state back."""
    member = a_replica(log=[1, 1, 1], commit=3)
    member.node.step(_install(Snapshot(Index(2), Term(1), VOTERS), 1))
    (answer,) = sent(flush(member), MessageKind.APPEND_RESPONSE)
    assert answer.index == 3
    assert not member.snapshots


def test_a_snapshot_brings_the_membership_of_its_time() -> None:
    """Section 7: it includes the latest configuration as of its last included index."""
    member = a_replica(log=[1])
    later = ConfState(voters=(ReplicaId(1), ReplicaId(4)), learners=(ReplicaId(5),))
    member.node.step(_install(Snapshot(Index(9), Term(1), later), 1))
    assert member.node.conf_state == later


def test_a_snapshot_for_a_group_without_us_is_ignored() -> None:
    member = a_replica(log=[1])
    strangers = ConfState(voters=(ReplicaId(2), ReplicaId(3)))
    member.node.step(_install(Snapshot(Index(9), Term(1), strangers), 1))
    assert member.node.last_index == 1


def test_a_replica_does_not_campaign_while_a_snapshot_is_being_installed() -> None:
    member = a_replica(log=[1], async_storage_writes=True)
    member.node.step(_install(Snapshot(Index(9), Term(1), VOTERS), 1))
    member.node.ready()
    for _ in range(30):
        member.node.tick()
    assert member.node.term == 1


def test_nothing_is_applied_before_the_snapshot_is_installed() -> None:
    member = a_replica(log=[1, 1], async_storage_writes=True)
    member.node.step(_install(Snapshot(Index(9), Term(1), VOTERS), 1))
    member.node.step(
        Message(
            kind=MessageKind.APPEND,
            to=ReplicaId(1),
            sender=ReplicaId(2),
            term=Term(1),
            index=Index(9),
            log_term=Term(1),
            commit=Index(9),
        )
    )
    ready = member.node.ready()
    assert ready.snapshot is not None
    assert ready.committed == ()
    (task,) = [m for m in ready.messages if m.kind is MessageKind.STORAGE_APPEND]
    assert task.snapshot == ready.snapshot
    member.write(HardState(task.term, task.vote, task.commit), task.entries)
    member.install(task.snapshot)
    for response in task.responses:
        if response.to == 1:
            member.node.step(response)
    assert member.node.applied == 9


def test_a_silent_follower_is_not_sent_a_snapshot() -> None:
    cluster = _behind_after_compaction()
    cluster.isolate(3)
    cluster[1]._core.tracker.progress[ReplicaId(3)].recently_active = False
    cluster.propose(1, b"d")
    assert cluster[1].status().progress[ReplicaId(3)].state is not ProgressState.SNAPSHOT


def test_a_failed_snapshot_is_tried_again_after_a_heartbeat() -> None:
    cluster = _behind_after_compaction()
    cluster.held = {MessageKind.SNAPSHOT}
    cluster.tick(1)
    cluster.settle()
    follower = ReplicaId(3)
    assert cluster[1].status().progress[follower].state is ProgressState.SNAPSHOT
    cluster.in_flight.clear()
    cluster[1].report_snapshot(follower, ok=False)
    view = cluster[1].status().progress[follower]
    assert (view.state, view.next_index, view.is_paused) == (ProgressState.PROBE, 3, True)
    cluster.held = set()
    cluster.tick(1)
    cluster.settle()
    assert cluster[3].last_index == cluster[1].last_index


def test_a_follower_that_was_outrun_gets_the_next_snapshot_at_once() -> None:
    """What it installed ends below the leader's log by now, and nobody has to report that."""
    cluster = _behind_after_compaction()
    cluster.held = {MessageKind.SNAPSHOT}
    cluster.tick(1)
    cluster.settle()
    cluster.isolate(3)
    for data in (b"d", b"e"):
        cluster.propose(1, data)
    _compact(cluster, 1, cluster[1].last_index)
    cluster.heal()
    cluster.held = set()
    cluster.settle()
    assert [s.data for s in cluster.replicas[3].snapshots] == [b"abc", b"abcde"]
    assert cluster[3].last_index == cluster[1].last_index


def test_a_delivered_snapshot_is_followed_by_a_probe_behind_it() -> None:
    cluster = _behind_after_compaction()
    cluster.held = {MessageKind.SNAPSHOT}
    cluster.tick(1)
    cluster.settle()
    follower = ReplicaId(3)
    cluster[1].report_snapshot(follower, ok=True)
    view = cluster[1].status().progress[follower]
    assert (view.state, view.next_index) == (ProgressState.PROBE, cluster[1].last_index + 1)


def test_a_snapshot_that_is_not_ready_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _behind_after_compaction()
    storage = cluster.replicas[1].storage

    def not_yet() -> Snapshot:
        raise SnapshotTemporarilyUnavailable("being made")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "snapshot", not_yet)
        cluster.tick(1)
        cluster.settle()
        assert not cluster.replicas[3].snapshots
    cluster.tick(1)
    cluster.settle()
    assert len(cluster.replicas[3].snapshots) == 1


def test_a_replica_restarts_from_a_compacted_log() -> None:
    """Section 7: after a restart, the snapshot stands for what came before."""
    cluster = Cluster()
    cluster.elect(1)
    for data in (b"a", b"b", b"c"):
        cluster.propose(1, data)
    _compact(cluster, 2, cluster[2].last_index - 1)
    cluster.crash(2)
    node = cluster.restart(2)
    assert node.commit == node.last_index == cluster[1].last_index
    cluster.propose(1, b"d")
    assert cluster.replicas[2].data() == [b"c", b"d"]
