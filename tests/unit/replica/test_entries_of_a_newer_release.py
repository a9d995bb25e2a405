"""A replica stops before an entry that only a newer release has a meaning for."""

from __future__ import annotations

import random

import pytest

from angarium.batch import encode
from angarium.errors import NewerRelease
from angarium.ids import CATALOG_GROUP, Incarnation, Micros, NodeId, RaftGroupId
from angarium.machine.catalog import Form
from angarium.machine.forms import VERSION
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.replica.host import Host
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk

GROUP = RaftGroupId(1)
UNKNOWN_KIND = bytes((63, VERSION, 0x90))
NEWER_FORM = bytes((9, VERSION + 1, 0x90))


def opened(disk: SimulatedDisk) -> Host:
    return Host(
        disk,
        node=NodeId(1),
        incarnation=Incarnation(7),
        config=HostConfig(replica=ReplicaConfig(snapshot_entries=1, snapshot_keep_entries=0)),
        jitter=lambda _: 0,
    )


def settle(host: Host) -> None:
    while (sync := host.begin_sync()) is not None:
        sync.write()
        host.finish_sync(sync)


def a_leader(disk: SimulatedDisk, group: RaftGroupId) -> Host:
    host = opened(disk)
    host.form_group(group, [host.id])
    let_time_pass(host)
    return host


def let_time_pass(host: Host) -> None:
    """Long enough for an election."""
    for _ in range(40):
        host.tick()
        settle(host)


@pytest.mark.parametrize("data", [UNKNOWN_KIND, NEWER_FORM])
def test_a_partition_goes_as_far_as_its_release_and_no_further(data: bytes) -> None:
    disk = SimulatedDisk(random.Random(1))
    host = a_leader(disk, GROUP)
    replica = host.replicas[GROUP]
    stored = Publishing([encode([b"kept"])], DeliveryMode.CONSISTENT, lambda _: None)
    replica.publish([stored], now=Micros(1))
    replica.process()
    settle(host)
    applied = replica.applied
    # As a leader of a newer release would have written it.
    replica.propose(data)
    replica.process()
    with pytest.raises(NewerRelease, match=r"entry \d+ of groups/1 .* newer release"):
        settle(host)
    assert replica.applied == applied
    assert replica.partition.machine.applied_index == applied

    # A snapshot taken now does not stand for the entry, which waits for who understands it.
    do_now(host.maintain())
    assert replica.snapshot_index <= applied
    disk.crash()
    again = opened(disk)
    assert again.replicas[GROUP].last_index == applied + 1
    with pytest.raises(NewerRelease):
        let_time_pass(again)


def test_the_catalog_too() -> None:
    host = a_leader(SimulatedDisk(random.Random(1)), CATALOG_GROUP)
    catalog = host.catalog
    assert catalog is not None
    catalog.submit(Form(cluster="c"), now=Micros(1), reply=lambda _: None)
    catalog.propose(UNKNOWN_KIND)
    catalog.process()
    with pytest.raises(NewerRelease, match="groups/0"):
        settle(host)
    assert catalog.catalog.machine.cluster == "c"


def test_what_every_release_finds_malformed_is_passed_over_by_all_alike() -> None:
    host = a_leader(SimulatedDisk(random.Random(1)), GROUP)
    replica = host.replicas[GROUP]
    before = replica.partition.machine.running_hash
    replica.propose(bytes((9, VERSION)) + b"no trim")
    replica.process()
    settle(host)
    assert replica.applied == replica.last_index
    assert replica.partition.machine.running_hash != before
