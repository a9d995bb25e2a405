"""What a replica leaves undone on a full disk, and what it is then."""

from __future__ import annotations

import random

from angarium.ids import GroupId, Incarnation, NodeId
from angarium.log.memory_disk import ROOMY
from angarium.replica.config import ReplicaConfig
from angarium.replica.host import Host, HostConfig
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk

GROUP = GroupId(1)


def a_leader(disk: SimulatedDisk) -> Host:
    host = Host(
        disk,
        node=NodeId(1),
        incarnation=Incarnation(7),
        config=HostConfig(replica=ReplicaConfig(snapshot_entries=1, snapshot_keep_entries=0)),
        jitter=lambda _: 0,
    )
    host.form_group(GROUP, [host.id])
    while not host.replicas[GROUP].may_serve:
        host.tick()
        while (sync := host.begin_sync()) is not None:
            host.write(sync)
            host.finish_sync(sync)
    return host


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
