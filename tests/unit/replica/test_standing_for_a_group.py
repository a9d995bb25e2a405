"""A replica stands for its group's records when it has them, votes, and was heard of."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.batch import encode
from angarium.ids import Index, Micros, NodeId, RaftGroupId
from angarium.modes import DeliveryMode
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.raft.messages import Message, MessageKind
from angarium.replica.acks import Publishing
from angarium.replica.fullness import MARK_TICKS, Fullness
from angarium.replica.partition_replica import PartitionReplica

GROUP = RaftGroupId(1)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
NEW = NodeId(4)
TICKS_MAX = 200


def replica(hosts: SeveralHosts, node: NodeId) -> PartitionReplica:
    found = hosts.replica(node, GROUP)
    assert isinstance(found, PartitionReplica)
    return found


def publish(hosts: SeveralHosts, leader: NodeId) -> None:
    request = Publishing([encode([b"x"])], DeliveryMode.CONSISTENT, lambda _: None)
    replica(hosts, leader).publish([request], now=Micros(1))
    replica(hosts, leader).process()
    hosts.settle()


def three_and_a_newcomer() -> tuple[SeveralHosts, NodeId]:
    hosts = SeveralHosts([*NODES, NEW])
    hosts.form(GROUP, NODES)
    hosts.hosts[NEW].join_group(GROUP)
    for _ in range(60):
        hosts.tick()
    leader = hosts.leader_known_at(NODES[0], GROUP)
    assert leader is not None
    publish(hosts, leader)
    return hosts, leader


def test_founders_stand_for_a_group_from_the_beginning() -> None:
    hosts = SeveralHosts(NODES)
    hosts.form(GROUP, NODES)
    assert [replica(hosts, node).unready() for node in NODES] == ["", "", ""]


def test_a_newcomer_is_read_when_it_has_everything_and_ready_when_it_votes() -> None:
    hosts, leader = three_and_a_newcomer()
    newcomer = replica(hosts, NEW)
    assert "is empty" in newcomer.shortfall()
    leading = replica(hosts, leader)
    leading.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, newcomer.id),)))
    leading.process()
    for _ in range(10):
        hosts.tick()
    assert newcomer.shortfall() == ""
    assert "has not taken its place" in newcomer.unready()
    leaving = next(hosts.hosts[node].id for node in NODES if node != leader)
    swap = (Change(ChangeKind.ADD_VOTER, newcomer.id), Change(ChangeKind.REMOVE, leaving))
    leading.propose_conf_change(ConfChange(swap))
    leading.process()
    hosts.settle()
    assert newcomer.unready() != "", "the others may not have heard of it"
    for _ in range(10):
        hosts.tick()
    assert newcomer.unready() == ""


def test_one_that_was_away_catches_up_before_it_is_read_again() -> None:
    hosts, leader = three_and_a_newcomer()
    away = next(node for node in NODES if node != leader)
    hosts.deaf.add(away)
    for _ in range(5):
        publish(hosts, leader)
    hosts.restart(away)
    hosts.deaf.clear()
    assert "has not heard" in replica(hosts, away).shortfall(), "nobody has told it anything yet"
    end = replica(hosts, leader).end_offset
    for _ in range(TICKS_MAX):
        hosts.tick()
        if not replica(hosts, away).shortfall():
            break
    assert replica(hosts, away).end_offset == end, "it is read with less than was acknowledged"


def test_what_a_heartbeat_says_is_not_all_there_is() -> None:
    # It never speaks of more than the follower is known to have.
    hosts, leader = three_and_a_newcomer()
    away = next(node for node in NODES if node != leader)
    hosts.restart(away)
    returned = replica(hosts, away)
    word = Message(
        kind=MessageKind.HEARTBEAT,
        to=returned.id,
        sender=replica(hosts, leader).id,
        term=returned.raft.term,
        commit=returned.raft.commit,
    )
    returned.step(word)
    assert "has not heard" in returned.shortfall()


def test_one_that_restarts_with_all_the_others_waits_for_the_first_entry_of_a_leader() -> None:
    hosts, leader = three_and_a_newcomer()
    publish(hosts, leader)
    end = replica(hosts, leader).end_offset
    for node in NODES:
        hosts.restart(node)
    for node in NODES:
        assert replica(hosts, node).shortfall() != ""
    for _ in range(TICKS_MAX):
        hosts.tick()
        for node in NODES:
            assert replica(hosts, node).shortfall() or replica(hosts, node).end_offset == end
    assert [replica(hosts, node).shortfall() for node in NODES] == ["", "", ""]


def test_one_that_is_always_an_entry_behind_under_load_is_ready_all_the_same() -> None:
    hosts, leader = three_and_a_newcomer()
    away = next(node for node in NODES if node != leader)
    hosts.restart(away)
    raft = replica(hosts, away).raft
    fullness, applied = Fullness(raft, conf_heard_ticks=8), raft.commit + 10
    told = Message(kind=MessageKind.APPEND, term=raft.term, commit=Index(applied + 1))
    fullness.hear(told, raft)
    assert "is catching up" in fullness.shortfall(raft, Index(applied))
    for _ in range(3 * MARK_TICKS):
        applied += 1
        fullness.hear(msgspec.structs.replace(told, commit=Index(applied + 1)), raft)
        fullness.tick(raft)
    assert fullness.shortfall(raft, Index(applied)) == ""
    assert "is behind" in fullness.shortfall(raft, Index(applied - 3 * MARK_TICKS))


def test_a_leader_does_not_rest_on_the_word_of_one_that_is_gone() -> None:
    hosts, leader = three_and_a_newcomer()
    for _ in range(TICKS_MAX):
        hosts.tick()
        if hosts.hosts[leader].resting:
            break
    else:
        pytest.fail("the group never rested")
    gone = next(node for node in NODES if node != leader)
    hosts.deaf.add(gone)
    hosts.hosts[leader].link_changed(gone)
    for _ in range(TICKS_MAX):
        hosts.tick()
        assert not hosts.hosts[leader].resting, "one of its members is gone"
    hosts.deaf.clear()
    for _ in range(TICKS_MAX):
        hosts.tick()
    assert hosts.hosts[leader].resting
