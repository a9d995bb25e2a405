"""A group at rest costs nothing, and whoever needs its leader still finds it."""

from __future__ import annotations

import pytest

from angarium.ids import GroupId, Incarnation, NodeId, ReplicaId, node_of
from angarium.log.memory_disk import MemoryDisk
from angarium.replica.host import Host, HostConfig

GROUP = GroupId(1)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
TICKS_MAX = 200


class ThreeHosts:
    """Three hosts that share a group, with a network that carries everything at once."""

    def __init__(self) -> None:
        self.disks = {node: MemoryDisk() for node in NODES}
        self.hosts = {node: self._opened(node) for node in NODES}
        self.deaf: set[NodeId] = set()
        """Nodes that nothing reaches."""
        voters = [host.id for host in self.hosts.values()]
        for host in self.hosts.values():
            host.form_group(GROUP, voters)

    def restart(self, node: NodeId) -> None:
        self.hosts[node] = self._opened(node)

    def tick(self) -> None:
        for node, host in self.hosts.items():
            if node not in self.deaf:
                host.tick()
        while self._carry():
            continue

    def leader_known_at(self, node: NodeId) -> NodeId | None:
        leader: ReplicaId = self.hosts[node].replicas[GROUP].raft.leader
        return node_of(leader) if leader else None

    def until_all_rest(self) -> NodeId:
        for _ in range(TICKS_MAX):
            self.tick()
            if all(host.resting for host in self.hosts.values()):
                leader = self.leader_known_at(NODES[0])
                assert leader is not None
                return leader
        pytest.fail("the group never rested")

    def _opened(self, node: NodeId) -> Host:
        # Different patience, so that elections do not split.
        return Host(
            self.disks[node],
            node=node,
            incarnation=Incarnation(7),
            config=HostConfig(),
            jitter=lambda ticks: int(node) * 3 % ticks,
        )

    def _carry(self) -> bool:
        carried = False
        for host in self.hosts.values():
            while (sync := host.begin_sync()) is not None:
                host.write(sync)
                host.finish_sync(sync)
            for group, message in host.outbox.take_raft_messages():
                carried = True
                if node_of(message.to) not in self.deaf:
                    self.hosts[node_of(message.to)].deliver(group, message)
            for told in host.outbox.take_peer_messages():
                carried = True
                if node_of(told.to) not in self.deaf:
                    self.hosts[node_of(told.to)].deliver_from_peer(told)
        return carried


def test_a_replica_that_comes_back_to_a_group_at_rest_finds_its_leader() -> None:
    three = ThreeHosts()
    leader = three.until_all_rest()
    follower = next(node for node in NODES if node != leader)
    three.restart(follower)
    for _ in range(TICKS_MAX):
        three.tick()
        if three.leader_known_at(follower) is not None:
            break
    assert three.leader_known_at(follower) == leader, "nobody was deposed for it"


def test_a_link_that_comes_back_wakes_the_groups_shared_over_it() -> None:
    three = ThreeHosts()
    leader = three.until_all_rest()
    follower, bystander = (node for node in NODES if node != leader)
    three.restart(follower)
    three.hosts[leader].link_changed(follower)
    three.hosts[bystander].link_changed(follower)
    assert not three.hosts[leader].resting
    assert three.hosts[bystander].resting, "it shares no leader with the one that came back"
    three.tick()
    assert three.leader_known_at(follower) == leader


def test_a_link_lost_to_the_leader_does_not_wait_for_its_silence_to_show() -> None:
    three = ThreeHosts()
    leader = three.until_all_rest()
    three.deaf.add(leader)
    followers = [node for node in NODES if node != leader]
    for node in followers:
        three.hosts[node].link_changed(leader)
        assert not three.hosts[node].resting
    for ticks in range(TICKS_MAX):
        three.tick()
        if any(three.hosts[node].replicas[GROUP].may_serve for node in followers):
            assert ticks <= 2 * HostConfig().replica.election_ticks
            return
    pytest.fail("nobody took over")
