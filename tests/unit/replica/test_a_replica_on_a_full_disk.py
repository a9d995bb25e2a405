"""What a replica leaves undone on a full disk, and what it is then."""

from __future__ import annotations

import random

import pytest
from tests.unit.replica.one_node import GROUP, a_leader
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.errors import DiskFull
from angarium.ids import NodeId
from angarium.log.memory_disk import ROOMY
from angarium.log.wal import WalConfig
from angarium.replica.replica import VITAL_ENTRY_BYTES_MAX
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk

FULL = NodeId(1)
OTHERS = [NodeId(2), NodeId(3)]
NODES = [FULL, *OTHERS]
SMALL = WalConfig(file_bytes=64 << 10, reserve_bytes=32 << 10)


def test_a_snapshot_for_which_there_is_no_room_is_taken_when_there_is() -> None:
    disk = SimulatedDisk(random.Random(1))
    host = a_leader(disk)
    replica = host.replicas[GROUP]
    assert replica.wants_snapshot()

    disk.capacity_bytes = disk.used_bytes()
    do_now(host.maintain())
    assert replica.wants_snapshot()
    assert not replica.is_busy

    disk.capacity_bytes = ROOMY
    do_now(host.maintain())
    assert replica.snapshot_index == replica.applied


def full_and_led_by(leader: NodeId) -> SeveralHosts:
    """Return hosts of which one has a full disk, with a group that another one leads."""
    hosts = SeveralHosts(NODES, wal=SMALL)
    hosts.form(GROUP, NODES)
    while not any(hosts.replica(node, GROUP).may_serve for node in NODES):
        hosts.tick()
    lead(hosts, leader)
    fill(hosts, FULL)
    return hosts


def fill(hosts: SeveralHosts, node: NodeId) -> None:
    """Leave no room on a node's disk, nor in the files its log has prepared."""
    disk = hosts.disks[node]
    disk.capacity_bytes -= disk.free_bytes()
    while not hosts.hosts[node].wal.is_full:
        lead(hosts, OTHERS[0])
        lead(hosts, OTHERS[1])


def lead(hosts: SeveralHosts, node: NodeId) -> None:
    """Let a node lead, through an election in which everybody has to remember a vote."""
    target = hosts.replica(node, GROUP)
    for other in NODES:
        replica = hosts.replica(other, GROUP)
        if replica.may_serve and other != node:
            replica.raft.transfer_leader(target.id)
            replica.process()
    hosts.settle()
    while not target.may_serve:
        hosts.tick()


def test_a_node_whose_reserve_is_used_up_falls_silent_and_comes_back() -> None:
    hosts = full_and_led_by(OTHERS[0])
    full = hosts.hosts[FULL]
    for _ in range(1_000):
        lead(hosts, OTHERS[1])
        lead(hosts, OTHERS[0])
        if full.wal.is_exhausted:
            break
    assert full.wal.is_exhausted
    behind = hosts.replica(FULL, GROUP).raft.term
    for _ in range(20):
        lead(hosts, OTHERS[1])
        lead(hosts, OTHERS[0])
    assert hosts.replica(FULL, GROUP).raft.term == behind, "it could not remember a vote"

    hosts.disks[FULL].capacity_bytes = ROOMY
    for _ in range(30):
        hosts.tick()
    assert not full.wal.is_full
    assert hosts.leader_known_at(FULL, GROUP) in OTHERS
    assert hosts.replica(FULL, GROUP).applied == hosts.replica(OTHERS[0], GROUP).applied


def test_a_full_leader_takes_small_entries_only() -> None:
    hosts = full_and_led_by(OTHERS[0])
    lead(hosts, FULL)
    replica = hosts.replica(FULL, GROUP)
    with pytest.raises(DiskFull):
        replica.propose(bytes(VITAL_ENTRY_BYTES_MAX + 1))
    replica.propose(b"")
    replica.process()
    hosts.settle()
    assert replica.applied == replica.last_index
