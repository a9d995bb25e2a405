"""Damaged segments are made whole again from the peers' copies."""

from __future__ import annotations

import pytest
from tests.unit.replica.hosts import GROUP, Hosts

from angarium.errors import CorruptData
from angarium.ids import Micros, NodeId, Offset
from angarium.machine import Trim

VICTIM = 2


def with_segments() -> Hosts:
    """Return hosts with three segments of sixteen records each, written everywhere."""
    hosts = Hosts()
    hosts.form()
    for number in range(48):
        hosts.publish(b"%d" % number + b"x" * 900)
    hosts.tick(2)
    for node in (1, 2, 3):
        hosts.maintain(node)
    return hosts


def trim(hosts: Hosts, start: int) -> None:
    leader = hosts.leader()
    command = Trim(start_offset=Offset(start))
    leader.partition.submit(command, now=Micros(1_000), reply=lambda _: None)
    leader.process()
    hosts.settle()
    hosts.tick(2)


def damage_first_segment(hosts: Hosts) -> None:
    disk = hosts.disks[NodeId(VICTIM)]
    folder = f"groups/{GROUP}/segments"
    name = next(name for name in disk.list(folder) if name.endswith(".seg"))
    file = disk.open(f"{folder}/{name}")
    byte = file.pread(1, 500)[0] ^ 1
    file.pwrite([bytes([byte])], 500)
    file.close()


def mend(hosts: Hosts) -> None:
    log = hosts.hosts[NodeId(VICTIM)].replicas[GROUP].partition.log
    with pytest.raises(CorruptData):
        log.read(log.start_offset, 1 << 20)
    for _ in range(30):
        hosts.tick()


def test_a_damaged_batch_is_replaced_by_a_peers() -> None:
    hosts = with_segments()
    damage_first_segment(hosts)
    mend(hosts)
    assert hosts.values(VICTIM) == hosts.values(1)


def test_a_segment_is_mended_though_the_damaged_part_has_been_trimmed() -> None:
    hosts = with_segments()
    damage_first_segment(hosts)
    trim(hosts, 4)
    replica = hosts.hosts[NodeId(VICTIM)].replicas[GROUP]
    replica.partition.log.verify_segment(Offset(0))
    for _ in range(30):
        hosts.tick()
    assert not replica.is_mending
    assert hosts.values(VICTIM) == hosts.values(1)
