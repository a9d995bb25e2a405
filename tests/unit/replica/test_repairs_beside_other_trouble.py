"""A log is repaired beside what else goes on: other damage, snapshots, crashes, witnesses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.replica.damaged_hosts import CONFIG_OF_FILES, LAST, VALUES, flip, stop
from tests.unit.replica.hosts import GROUP, Hosts

from angarium.batch import encode
from angarium.ids import Micros, NodeId, node_of, witness_id
from angarium.log.snapshots import SnapshotStore
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing
from angarium.replica.repair import IdentityLost
from angarium.replica.work import do_now

FORGETFUL = replace(
    CONFIG_OF_FILES, replica=replace(CONFIG_OF_FILES.replica, snapshot_keep_entries=0)
)


def stored_one_by_one() -> Hosts:
    hosts = Hosts(3, FORGETFUL)
    hosts.form()
    hosts.leader()
    for value in (*VALUES, LAST):
        hosts.publish(value)
    hosts.tick(10)
    return hosts


@pytest.mark.parametrize("third", ["down", "has a snapshot"])
@pytest.mark.parametrize("clean", [False, True], ids=["killed", "closed"])
def test_holes_that_alternate_between_two_replicas_are_filled(third: str, clean: bool) -> None:
    """Each of the two has what the other one lacks, and lacks what lies between that."""
    hosts = stored_one_by_one()
    if third == "has a snapshot":
        do_now(hosts.hosts[NodeId(3)].replicas[GROUP].shorten_log(is_patient=False))
        hosts.hosts[NodeId(3)].wal.sync()
        hosts.settle()
    stop(hosts, 1, 2, 3, clean=clean)
    for node, number in ((1, 5), (1, 15), (2, 10), (2, 20)):
        flip(hosts, node, VALUES[number])
    nodes = (1, 2) if third == "down" else (1, 2, 3)
    for node in nodes:
        hosts.open(NodeId(node))
    hosts.leader()
    hosts.tick(40)
    for node in nodes:
        assert hosts.values(node) == [*VALUES, LAST]


def test_damage_may_be_found_while_a_snapshot_is_being_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the snapshot stands for when it is saved needs no repair any more."""
    small = replace(FORGETFUL.replica, snapshot_entries=40, snapshot_wait_entries=4)
    hosts = Hosts(3, replace(FORGETFUL, replica=small))
    hosts.form()
    led = node_of(hosts.leader().id)
    away = next(one for one in hosts.hosts if one != led)
    hosts.publish(b"first")
    hosts.tick(3)
    stop(hosts, away, clean=True)
    for number in range(60):
        hosts.publish(b"missed %02d" % number)
    hosts.tick(5)
    flip(hosts, led, b"missed 11")
    save = SnapshotStore.save

    def save_meanwhile(*arguments: object) -> None:
        monkeypatch.undo()
        # The follower is back, and its leader meets the damage while a thread saves.
        hosts.open(away)
        hosts.tick(20)
        assert GROUP in hosts.hosts[led].repairs
        save(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SnapshotStore, "save", save_meanwhile)
    hosts.maintain(led)
    hosts.tick(100)
    for node in (1, 2, 3):
        assert len(hosts.values(node)) == 61


def test_a_crash_in_the_middle_of_a_repair_costs_no_replica() -> None:
    hosts = Hosts(3, CONFIG_OF_FILES)
    hosts.form()
    leader = hosts.leader()
    led = node_of(leader.id)
    away = next(one for one in hosts.hosts if one != led)
    hosts.publish(b"first")
    hosts.tick(3)
    stop(hosts, away, clean=True)
    for value in VALUES:  # in one sync round: the log has the commit index of before
        request = Publishing([encode([value])], DeliveryMode.CONSISTENT, lambda _: None)
        leader.publish([request], now=Micros(2))
    leader.process()
    hosts.settle()
    hosts.tick(10)
    assert hosts.hosts[led].wal.log(GROUP).hard_state.commit < leader.raft.commit
    flip(hosts, led, VALUES[7])
    hosts.open(away)
    while not hosts.heard[led].damage:
        hosts.tick()
    stop(hosts, led, clean=False)
    again = hosts.open(led)
    hosts.tick(60)
    assert not again.lost
    assert len(hosts.values(led)) == len(VALUES) + 1


@pytest.mark.parametrize("is_lost", [False, True], ids=["at work", "lost"])
def test_a_replica_waits_for_a_full_voter_whatever_its_witness_has_forgotten(
    is_lost: bool,
) -> None:
    hosts = Hosts(3, FORGETFUL)
    one, two, three = (hosts.hosts[NodeId(number)] for number in (1, 2, 3))
    for host in (one, two, three):
        host.form_group(GROUP, [one.id, two.id, witness_id(three.id)])
    hosts.leader()
    for value in VALUES:
        hosts.publish(value)
    hosts.tick(10)
    do_now(three.witnesses[GROUP].shorten_log(is_patient=False))
    three.wal.sync()
    if is_lost:
        three._lose(GROUP, IdentityLost("its snapshot is damaged"))
    stop(hosts, 1, 2, clean=True)
    flip(hosts, 1, VALUES[7])
    hosts.open(NodeId(1))
    hosts.tick(150)
    hosts.open(NodeId(2))
    hosts.tick(60)
    assert not hosts.hosts[NodeId(1)].lost
    assert GROUP in hosts.hosts[NodeId(1)].replicas
