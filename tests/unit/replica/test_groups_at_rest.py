"""A group at rest costs nothing, and whoever needs its leader still finds it."""

from __future__ import annotations

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import Index, NodeId, RaftGroupId
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.raft.messages import Message, MessageKind
from angarium.replica.config import ReplicaConfig

GROUP = RaftGroupId(1)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
TICKS_MAX = 200


def three_at_rest() -> tuple[SeveralHosts, NodeId]:
    """Return hosts whose group rests, and its leader."""
    three = SeveralHosts(NODES)
    three.form(GROUP, NODES)
    for _ in range(TICKS_MAX):
        three.tick()
        if all(host.resting for host in three.hosts.values()):
            leader = three.leader_known_at(NODES[0], GROUP)
            assert leader is not None
            return three, leader
    pytest.fail("the group never rested")


def test_a_replica_that_comes_back_to_a_group_at_rest_finds_its_leader() -> None:
    three, leader = three_at_rest()
    follower = next(node for node in NODES if node != leader)
    three.restart(follower)
    for _ in range(TICKS_MAX):
        three.tick()
        if three.leader_known_at(follower, GROUP) is not None:
            break
    assert three.leader_known_at(follower, GROUP) == leader, "nobody was deposed for it"


def test_a_link_that_comes_back_wakes_the_groups_shared_over_it() -> None:
    three, leader = three_at_rest()
    follower, bystander = (node for node in NODES if node != leader)
    three.restart(follower)
    three.hosts[leader].link_changed(follower)
    three.hosts[bystander].link_changed(follower)
    assert not three.hosts[leader].resting
    assert three.hosts[bystander].resting, "it shares no leader with the one that came back"
    three.tick()
    assert three.leader_known_at(follower, GROUP) == leader


def test_a_link_lost_to_the_leader_does_not_wait_for_its_silence_to_show() -> None:
    three, leader = three_at_rest()
    three.deaf.add(leader)
    followers = [node for node in NODES if node != leader]
    for node in followers:
        three.hosts[node].link_changed(leader)
        assert not three.hosts[node].resting
    for ticks in range(TICKS_MAX):
        three.tick()
        if any(three.replica(node, GROUP).may_serve for node in followers):
            assert ticks <= 2 * ReplicaConfig().election_ticks
            return
    pytest.fail("nobody took over")


def test_a_leader_whose_handover_was_not_heard_does_not_rest_before_it_is_called_off() -> None:
    three, leader = three_at_rest()
    heir = next(node for node in NODES if node != leader)
    replica = three.replica(leader, GROUP)
    three.deaf.add(heir)
    replica.raft.transfer_leader(three.replica(heir, GROUP).id)
    replica.process()
    three.tick()
    three.deaf.clear()
    for _ in range(TICKS_MAX):
        three.tick()
        if three.hosts[leader].resting:
            break
    assert replica.raft.transferee == 0, "it would refuse every proposal for as long as it rests"


@pytest.mark.parametrize("ticks_without_answers", [20, 21, 22, 23])
def test_a_leader_rests_only_when_the_others_have_had_time_to_hear_of_the_last_commit(
    ticks_without_answers: int,
) -> None:
    """Seed 211041: far away, answers came as late as the rest; who had not heard campaigned."""
    three, leader = three_at_rest()
    replica = three.replica(leader, GROUP)
    replica.propose(b"")
    replica.process()
    last = replica.raft.last_index
    three.is_lost = lambda message: message.kind is MessageKind.APPEND_RESPONSE
    for _ in range(ticks_without_answers):
        three.tick()
    three.is_lost = lambda message: _is_news(message, last)
    for _ in range(TICKS_MAX):
        three.tick()
        if three.hosts[leader].resting:
            break
    assert three.replica(leader, GROUP).raft.commit == last
    assert all(host.resting for host in three.hosts.values())


def test_a_learner_whose_answers_come_late_hears_of_the_last_commit_before_the_rest() -> None:
    """Seed 401045: heartbeats told it of what it was known to have; it never heard of the rest."""
    three = SeveralHosts(NODES)
    voters, far = NODES[:2], NODES[2]
    three.form(GROUP, voters)
    three.hosts[far].join_group(GROUP)
    learner = three.replica(far, GROUP)
    leader: NodeId | None = None
    for _ in range(TICKS_MAX):
        three.tick()
        leader = three.leader_known_at(voters[0], GROUP)
        if leader is not None and three.replica(leader, GROUP).may_serve:
            break
    assert leader is not None
    replica = three.replica(leader, GROUP)
    replica.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, learner.id),)))
    replica.process()
    for _ in range(TICKS_MAX):
        three.tick()
        if all(host.resting for host in three.hosts.values()):
            break
    replica.propose(b"")
    replica.process()
    last = replica.raft.last_index

    answers: list[Message] = []

    def is_late(message: Message) -> bool:
        is_answer = message.sender == learner.id and message.kind is MessageKind.APPEND_RESPONSE
        if is_answer:
            answers.append(message)
        return is_answer or (message.to == learner.id and _is_news(message, last))

    three.is_lost = is_late
    for _ in range(2 * ReplicaConfig().rest_after_ticks):
        three.tick()
    assert learner.raft.last_index == replica.raft.commit == last
    three.hosts[leader].deliver(GROUP, answers[-1], via=three.hosts[far].id)
    for _ in range(TICKS_MAX):
        three.tick()
        if three.hosts[leader].resting:
            break
    assert three.hosts[leader].resting
    assert learner.raft.commit == last
    assert three.hosts[far].resting


def _is_news(message: Message, last: Index) -> bool:
    """Tell whether a message has no other purpose than to tell of the commit of the last entry."""
    is_empty = message.kind is MessageKind.APPEND and not message.entries
    return is_empty and message.commit == last


def test_a_group_rests_no_sooner_than_everybody_has_heard_of_its_membership() -> None:
    """Heartbeats that are seldom: a rest in between would last, and nobody count as in sync."""
    slow = ReplicaConfig(heartbeat_ticks=50, election_ticks=51)
    assert slow.conf_heard_ticks > slow.rest_after_ticks
    three = SeveralHosts(NODES, slow)
    three.form(GROUP, NODES)
    for _ in range(5 * TICKS_MAX):
        three.tick()
        leader = three.leader_known_at(NODES[0], GROUP)
        if leader is not None and three.hosts[leader].resting:
            assert three.hosts[leader].replicas[GROUP].is_membership_heard
            return
    pytest.fail("the group never rested")
