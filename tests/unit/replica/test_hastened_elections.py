"""A node that is known to be gone is not waited for, and one that is not goes on leading."""

from __future__ import annotations

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import NodeId, RaftGroupId
from angarium.raft.messages import MessageKind
from angarium.replica.config import ReplicaConfig

GROUP = RaftGroupId(1)
PATIENT = ReplicaConfig(election_ticks=200, heartbeat_ticks=2)
"""Nobody would campaign by itself within these tests."""
SOON = 4 * PATIENT.heartbeat_ticks
"""Ticks until even the last of four has had its turn."""


def led(count: int = 3, config: ReplicaConfig = PATIENT) -> tuple[SeveralHosts, NodeId]:
    """Return hosts whose group has a leader that everybody knows, and that leader."""
    nodes = [NodeId(number + 1) for number in range(count)]
    several = SeveralHosts(nodes, config)
    several.form(GROUP, nodes)
    several.replica(nodes[0], GROUP).raft.campaign()
    several.replica(nodes[0], GROUP).process()
    for _ in range(10):
        several.tick()
    assert {several.leader_known_at(one, GROUP) for one in nodes} == {nodes[0]}
    return several, nodes[0]


def others(several: SeveralHosts, leader: NodeId) -> list[NodeId]:
    return [one for one in several.hosts if one != leader]


def ticks_until_another_leads(several: SeveralHosts, gone: NodeId) -> int:
    for ticks in range(1_000):
        known = {several.leader_known_at(one, GROUP) for one in others(several, gone)}
        if len(known) == 1 and known.isdisjoint({gone, None}):
            return ticks
        several.tick()
    pytest.fail("nobody was elected")


@pytest.mark.parametrize("count", [3, 5])
def test_a_leader_that_is_gone_is_replaced_within_a_few_ticks(count: int) -> None:
    several, leader = led(count)
    several.deaf.add(leader)
    for node in others(several, leader):
        assert several.hosts[node].hasten_elections(leader) == 1
    assert ticks_until_another_leads(several, leader) <= SOON


def test_without_the_word_a_whole_timeout_passes() -> None:
    several, leader = led()
    several.deaf.add(leader)
    assert ticks_until_another_leads(several, leader) >= PATIENT.election_ticks


def test_whoever_hears_it_later_elects_then() -> None:
    several, leader = led()
    several.deaf.add(leader)
    early, late = others(several, leader)
    several.hosts[early].hasten_elections(leader)
    for _ in range(30):
        several.tick()
    assert several.leader_known_at(late, GROUP) == leader, "one alone elects nobody"
    several.hosts[late].hasten_elections(leader)
    assert ticks_until_another_leads(several, leader) <= SOON


def test_votes_that_were_split_are_asked_for_again() -> None:
    several, leader = led()
    several.deaf.add(leader)
    for node in others(several, leader):
        several.hosts[node].hasten_elections(leader)
    # Each has its own vote, and neither hears of the other's wish in time.
    several.is_lost = lambda message: message.kind is not MessageKind.PRE_VOTE
    for _ in range(SOON):
        several.tick()
    several.is_lost = lambda _: False
    assert ticks_until_another_leads(several, leader) <= PATIENT.election_ticks


def test_a_group_at_rest_looks_for_a_leader_as_well() -> None:
    resting = ReplicaConfig(election_ticks=200, heartbeat_ticks=2, vouch_patience_ticks=400)
    several, leader = led(3, resting)
    for _ in range(400):
        several.tick()
        if all(host.resting for host in several.hosts.values()):
            break
    assert all(host.resting for host in several.hosts.values())
    several.deaf.add(leader)
    for node in others(several, leader):
        several.hosts[node].hasten_elections(leader)
    assert ticks_until_another_leads(several, leader) <= SOON


def test_one_that_believes_a_lie_deposes_nobody() -> None:
    several, leader = led()
    liar, _ = others(several, leader)
    term = several.replica(leader, GROUP).raft.term
    for _ in range(20):
        several.hosts[liar].hasten_elections(leader)
        for _ in range(3):
            several.tick()
    assert several.replica(leader, GROUP).raft.is_leader
    assert several.replica(leader, GROUP).raft.term == term
    assert several.leader_known_at(liar, GROUP) == leader


def test_a_leader_that_is_heard_before_anybody_campaigns_stays() -> None:
    several, leader = led()
    term = several.replica(leader, GROUP).raft.term
    # Everybody is lied to, and the next heartbeat comes first.
    for _ in range(PATIENT.heartbeat_ticks):
        several.replica(leader, GROUP).raft.tick()
    for node in others(several, leader):
        several.hosts[node].hasten_elections(leader)
    several.replica(leader, GROUP).process()
    several.settle()
    for _ in range(50):
        several.tick()
    assert several.replica(leader, GROUP).raft.term == term


def test_the_word_about_a_follower_changes_nothing() -> None:
    several, leader = led()
    one, other = others(several, leader)
    assert several.hosts[one].hasten_elections(other) == 0
    assert several.hosts[leader].hasten_elections(other) == 0
    several.tick()
    assert several.leader_known_at(one, GROUP) == leader


def test_who_is_to_let_others_go_first_still_does() -> None:
    several, leader = led()
    several.deaf.add(leader)
    reluctant, willing = others(several, leader)
    several.hosts[reluctant].is_reluctant = True
    for node in (reluctant, willing):
        several.hosts[node].hasten_elections(leader)
    ticks_until_another_leads(several, leader)
    assert several.leader_known_at(reluctant, GROUP) == willing
