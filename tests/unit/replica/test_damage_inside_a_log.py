"""Damage inside a log is passed over by no replica, and repaired from those that are whole."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.unit.replica.damaged_hosts import LAST, VALUES, flip, stop, written
from tests.unit.replica.hosts import GROUP, Hosts

from angarium.batch import encode, stamp
from angarium.ids import Index, Micros, NodeId, Offset, Term, node_of
from angarium.machine import Projection, encode_append
from angarium.replica.damage import Fate
from angarium.replica.partition import Partition


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "killed"])
def test_single_flips_on_two_of_three_replicas_mend_each_other(clean: bool) -> None:
    hosts = written()
    stop(hosts, 1, 2, 3, clean=clean)
    flip(hosts, 1, VALUES[7])
    flip(hosts, 2, VALUES[20])
    for node in (1, 2, 3):
        hosts.open(NodeId(node))
    hosts.leader()
    for node in (1, 2):
        for _ in range(100):
            if GROUP in hosts.hosts[NodeId(node)].replicas:
                break
            hosts.tick()
    hosts.publish(b"afterwards")
    hosts.tick(10)
    for node in (1, 2, 3):
        assert hosts.values(node) == [*VALUES, LAST, b"afterwards"]
        assert not hosts.hosts[NodeId(node)].lost
    for node in (1, 2):
        fates = [fate for fate, *_ in hosts.heard[NodeId(node)].damage]
        assert fates == [Fate.FOUND, Fate.MENDED]


def test_a_leader_that_meets_damage_for_a_follower_is_repaired_and_starves_nobody() -> None:
    hosts = written()
    leader = hosts.leader()
    led_by = node_of(leader.id)
    away = next(node for node in hosts.hosts if node != led_by)
    stop(hosts, away, clean=True)
    hosts.publish(*[b"while away %d" % number for number in range(3)])
    for number in range(30):
        hosts.publish(b"missed %02d" % number)
    hosts.tick(5)
    flip(hosts, led_by, b"missed 11")
    hosts.open(away)
    hosts.tick(60)
    expected = hosts.values(int(led_by))
    assert len(expected) == len(VALUES) + 34
    for node in (1, 2, 3):
        assert hosts.values(node) == expected
        assert not hosts.hosts[NodeId(node)].lost
    assert Fate.MENDED in [fate for fate, *_ in hosts.heard[led_by].damage]


def test_no_replica_applies_an_entry_behind_a_gap() -> None:
    hosts = written()
    replica = hosts.leader()
    entries = replica.raft.entries_after(Index(replica.applied - 3))
    assert [one.index for one in entries] == [replica.applied - 2 + step for step in range(3)]
    assert all(after.index == before.index + 1 for before, after in pairwise(entries))


def misnumbered(hosts: Hosts, by: int) -> None:
    """Have the leader store a batch numbered `by` more than what comes next."""
    leader = hosts.leader()
    batch = encode([b"misnumbered"])
    stamp(
        batch,
        base_offset=Offset(leader.partition.machine.next_offset + by),
        term=Term(leader.raft.term),
        append_time=Micros(leader.partition.machine.clock + 1),
    )
    leader.propose(encode_append([batch]))
    leader.process()
    hosts.settle()


def test_a_replica_with_records_that_its_leader_lacks_stops_and_keeps_its_files() -> None:
    hosts = written()
    misnumbered(hosts, -1)
    hosts.tick(3)
    for host in hosts.hosts.values():
        assert host.replicas[GROUP].halted
        assert not host.lost
    for node in (1, 2, 3):
        assert hosts.values(node) == [*VALUES, LAST]
    stop(hosts, 2, clean=True)
    assert hosts.open(NodeId(2)).replicas[GROUP].halted


def test_a_replica_that_lacks_records_stops_and_is_to_be_copied_anew() -> None:
    hosts = written()
    misnumbered(hosts, 1)
    hosts.tick(3)
    for host in hosts.hosts.values():
        assert GROUP in host.lost
        assert host.may_renew(GROUP)


@pytest.mark.parametrize("by", [-1, 1], ids=["below", "above"])
def test_a_refusal_that_stands_in_an_old_log_stops_no_start(
    monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    hosts = written()
    with monkeypatch.context() as earlier:
        earlier.setattr(Partition, "_compare_with_leader", lambda *_: None)
        earlier.setattr(Projection, "confirm", lambda *_: None)
        misnumbered(hosts, by)
        stop(hosts, 1, 2, 3, clean=True)
    for node in (1, 2, 3):
        hosts.open(NodeId(node))
    hosts.publish(b"afterwards")
    hosts.tick(3)
    for node in (1, 2, 3):
        assert hosts.values(node) == [*VALUES, LAST, b"afterwards"]


@pytest.mark.parametrize("by", [-1, 1], ids=["below", "above"])
def test_at_a_level_of_earlier_releases_a_misnumbered_batch_is_refused_as_they_do(by: int) -> None:
    hosts = written()
    for host in hosts.hosts.values():
        host.outbox.compares_numbers = False
        host.replicas[GROUP].partition.follow()  # a leader would miss its own projection
    misnumbered(hosts, by)
    for node, host in hosts.hosts.items():
        assert not host.replicas[GROUP].halted
        assert not host.lost
        assert hosts.values(int(node)) == [*VALUES, LAST]
