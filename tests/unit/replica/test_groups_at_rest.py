"""A group at rest costs nothing, and whoever needs its leader still finds it."""

from __future__ import annotations

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import NodeId, RaftGroupId
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
