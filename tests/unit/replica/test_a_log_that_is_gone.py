"""A replica whose log was lost is nobody any more until it is somebody else, whatever restarts."""

from __future__ import annotations

import pytest
from tests.unit.replica.hosts import GROUP, Hosts

from angarium.ids import CATALOG_GROUP, Incarnation, NodeId, RaftGroupId
from angarium.log.wal.files import FOLDER
from angarium.replica.repair import IdentityLost
from angarium.replica.work import do_now

HURT = NodeId(1)
LATER = RaftGroupId(2)


def a_group_whose_log_is_gone() -> Hosts:
    hosts = Hosts(3)
    hosts.form()
    hosts.publish(b"acknowledged")
    do_now(hosts.hosts[HURT].maintain())
    hosts.hosts[HURT].close()
    lose_the_log(hosts)
    return hosts


def lose_the_log(hosts: Hosts) -> None:
    disk = hosts.disks[HURT]
    for name in disk.list(FOLDER):
        disk.remove(f"{FOLDER}/{name}")


def write_something_else(hosts: Hosts, group: RaftGroupId = LATER) -> None:
    hosts.hosts[HURT].form_group(group, [hosts.hosts[HURT].id])
    for _ in range(10):
        hosts.hosts[HURT].tick()
    hosts.settle()
    hosts.hosts[HURT].close()


def come_back_as_somebody_else(hosts: Hosts) -> None:
    host = hosts.open(HURT)
    host.own_ids.save(GROUP, Incarnation(99))
    host.renew(GROUP, Incarnation(99))
    hosts.settle()
    host.join_group(GROUP)
    host.prepare(GROUP)
    write_something_else(hosts)


def test_it_is_still_lost_after_a_restart_between_the_loss_and_the_renewal() -> None:
    hosts = a_group_whose_log_is_gone()
    assert GROUP in hosts.open(HURT).lost
    write_something_else(hosts)
    again = hosts.open(HURT)
    assert GROUP in again.lost, "what it promised is not known to a log that was begun anew"
    assert LATER in again.replicas


def test_it_is_lost_no_longer_once_it_has_joined_as_somebody_else() -> None:
    hosts = a_group_whose_log_is_gone()
    come_back_as_somebody_else(hosts)
    again = hosts.open(HURT)
    assert not again.lost
    assert again.replicas[GROUP].id == again.own_ids.in_group(GROUP) != again.id


def test_it_is_itself_again_when_its_log_is_put_back() -> None:
    hosts = Hosts(3)
    hosts.form()
    hosts.publish(b"acknowledged")
    do_now(hosts.hosts[HURT].maintain())
    hosts.hosts[HURT].close()
    disk = hosts.disks[HURT]
    kept = {}
    for name in disk.list(FOLDER):
        file = disk.open(f"{FOLDER}/{name}")
        kept[name] = file.pread(file.size(), 0)
        file.close()
        disk.remove(f"{FOLDER}/{name}")
    lost = hosts.open(HURT)
    assert GROUP in lost.lost
    lost.close()
    lose_the_log(hosts)
    for name, content in kept.items():
        file = disk.create(f"{FOLDER}/{name}")
        file.pwrite([content], 0)
        file.close()
    again = hosts.open(HURT)
    assert not again.lost
    assert again.replicas[GROUP].id == again.id


def test_the_next_log_ends_behind_where_the_lost_one_was_durable() -> None:
    hosts = a_group_whose_log_is_gone()
    for number in (2, 3):
        durable = hosts.hosts[HURT].wal.durable_end
        assert durable > 0
        hosts.open(HURT)
        write_something_else(hosts, RaftGroupId(number))
        assert hosts.open(HURT).wal.end > durable, "others would take it for an older copy"
        write_something_else(hosts, RaftGroupId(10 + number))
        lose_the_log(hosts)


def test_a_replica_without_a_snapshot_is_lost_as_well_by_its_folder() -> None:
    # As who joined late has none, or one snapshot of several was lost with the log.
    hosts = a_group_whose_log_is_gone()
    disk = hosts.disks[HURT]
    disk.create("snapshots/7-1.snapshot").close()  # another group's: it is not all that is gone
    for name in disk.list("snapshots"):
        if not name.startswith("7-"):
            disk.remove(f"snapshots/{name}")
    assert GROUP in hosts.open(HURT).lost
    write_something_else(hosts)
    assert GROUP in hosts.open(HURT).lost


def test_a_catalog_that_was_joined_is_lost_with_the_log() -> None:
    hosts = a_group_whose_log_is_gone()
    hosts.open(HURT).join_group(CATALOG_GROUP)
    hosts.settle()
    hosts.hosts[HURT].close()
    lose_the_log(hosts)
    assert CATALOG_GROUP in hosts.open(HURT).lost


def test_one_that_was_renewed_is_lost_again_with_the_next_log() -> None:
    hosts = a_group_whose_log_is_gone()
    come_back_as_somebody_else(hosts)
    lose_the_log(hosts)
    assert GROUP in hosts.open(HURT).lost
    write_something_else(hosts, RaftGroupId(3))
    assert GROUP in hosts.open(HURT).lost


def test_a_node_that_has_lost_its_snapshots_as_well_does_not_start() -> None:
    hosts = a_group_whose_log_is_gone()
    disk = hosts.disks[HURT]
    for name in disk.list("snapshots"):
        disk.remove(f"snapshots/{name}")
    for _ in range(2):
        with pytest.raises(IdentityLost, match="--join"):
            hosts.open(HURT)
