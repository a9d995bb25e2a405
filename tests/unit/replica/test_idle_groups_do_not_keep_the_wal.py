"""A group in which nothing happens does not keep the files of the log that all groups share."""

from __future__ import annotations

from tests.unit.replica.several_hosts import SeveralHosts

from angarium.batch import encode
from angarium.ids import Micros, NodeId, RaftGroupId
from angarium.log.wal import WalConfig
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing

IDLE, BUSY = RaftGroupId(1), RaftGroupId(2)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
SMALL = WalConfig(file_bytes=64 << 10, reserve_bytes=16 << 10, files_kept=3, files_max=6)


def led() -> SeveralHosts:
    """Return hosts that share two groups, each with a leader and an entry."""
    hosts = SeveralHosts(NODES, wal=SMALL)
    for group in (IDLE, BUSY):
        hosts.form(group, NODES)
    while not all(any(hosts.replica(one, g).may_serve for one in NODES) for g in (IDLE, BUSY)):
        hosts.tick()
    publish(hosts, IDLE)
    return hosts


def publish(hosts: SeveralHosts, group: RaftGroupId) -> None:
    """Store a record of 4 KB."""
    leader = next(hosts.replica(one, group) for one in NODES if hosts.replica(one, group).may_serve)
    batch = bytearray(encode([bytes(4_000)]))
    request = Publishing([batch], DeliveryMode.CONSISTENT, lambda _: None)
    hosts.hosts[NodeId(leader.id >> 48)].replicas[group].publish([request], now=Micros(1_000))
    leader.process()
    hosts.settle()


def test_the_log_stays_short_beside_an_idle_group() -> None:
    hosts = led()
    for _ in range(150):  # about ten files
        publish(hosts, BUSY)
    for host in hosts.hosts.values():
        assert host.wal.file_count <= SMALL.files_kept + 1
        assert host.replicas[IDLE].partition.log.end_offset == 1


def test_entries_that_a_slow_member_needs_stay_until_there_are_too_many_files() -> None:
    hosts = led()
    leader = next(one for one in NODES if hosts.replica(one, BUSY).may_serve)
    slow = next(one for one in NODES if one != leader)
    behind = hosts.replica(slow, BUSY).last_index
    # It is heard of, but entries do not reach it.
    hosts.is_lost = lambda message: bool(message.entries) and message.to == hosts.hosts[slow].id
    wal = hosts.hosts[leader].wal
    most = 0
    while wal.log(BUSY).first_index() <= behind + 1:
        publish(hosts, BUSY)
        hosts.tick()
        most = max(most, wal.file_count)
    assert SMALL.files_kept < most <= SMALL.files_max + 1
