"""Who is said to be in sync may be relied upon when the next node is taken down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import Incarnation, NodeId, RaftGroupId
from angarium.machine.catalog import Labels
from angarium.machine.catalog.values import Node as Member
from angarium.node.node import Node
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.replica.config import ReplicaConfig

GROUP = RaftGroupId(1)
NODES = [NodeId(1), NodeId(2), NodeId(3)]


def leading(config: ReplicaConfig | None = None) -> tuple[SeveralHosts, NodeId]:
    """Return hosts of which three share a group, a fourth does not, and the group's leader."""
    hosts = SeveralHosts([*NODES, NodeId(4)], config)
    hosts.form(GROUP, NODES)
    hosts.hosts[NodeId(4)].join_group(GROUP)
    for _ in range(120):
        hosts.tick()
    leader = hosts.leader_known_at(NODES[0], GROUP)
    if leader is None:
        pytest.fail("nobody leads")
    return hosts, leader


def in_sync(hosts: SeveralHosts, node: NodeId) -> tuple[NodeId, ...] | None:
    members = {one: Member(one, Incarnation(7), (), Labels(), 1, 1) for one in (*NODES, NodeId(4))}
    machine = SimpleNamespace(nodes=SimpleNamespace(by_id=members))
    seen_from: Any = SimpleNamespace(
        id=node,
        host=hosts.hosts[node],
        peers=SimpleNamespace(is_up_as=lambda _: True),
        catalog=SimpleNamespace(machine=machine),
    )
    seen_from.is_here = lambda group, replica: Node.is_here(seen_from, group, replica)
    return Node.in_sync(seen_from, GROUP)


def test_the_leader_knows_and_nobody_else() -> None:
    hosts, leader = leading()
    assert in_sync(hosts, leader) == tuple(NODES)
    assert all(in_sync(hosts, node) is None for node in NODES if node != leader)


@pytest.mark.parametrize("heartbeat_ticks", [2, 5])
def test_nobody_counts_until_all_have_heard_of_a_change_of_membership(
    heartbeat_ticks: int,
) -> None:
    config = ReplicaConfig(heartbeat_ticks=heartbeat_ticks, election_ticks=5 * heartbeat_ticks)
    hosts, leader = leading(config)
    leaving = next(node for node in NODES if node != leader)
    replica = hosts.replica(leader, GROUP)
    newcomer = hosts.hosts[NodeId(4)].id
    replica.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, newcomer),)))
    replica.process()
    for _ in range(30):
        hosts.tick()
    swap = (
        Change(ChangeKind.ADD_VOTER, newcomer),
        Change(ChangeKind.REMOVE, hosts.hosts[leaving].id),
    )
    replica.propose_conf_change(ConfChange(swap))
    replica.process()
    hosts.settle()
    for _ in range(4 * heartbeat_ticks):
        assert in_sync(hosts, leader) == ()
        hosts.tick()
    assert in_sync(hosts, leader) == tuple(sorted({*NODES, NodeId(4)} - {leaving}))
