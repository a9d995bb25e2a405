"""What a replica leaves undone on a full disk, and what it is then."""

from __future__ import annotations

import random

from tests.unit.replica.one_node import GROUP, a_leader

from angarium.log.memory_disk import ROOMY
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk


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
