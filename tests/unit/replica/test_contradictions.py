"""Where two logs contradict each other one of them stops, keeps what it has, and it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.replica.hosts import GROUP, Hosts

from angarium.ids import Index, node_of
from angarium.raft import LogContradiction
from angarium.raft.messages import Message, MessageKind
from angarium.replica import roster
from angarium.replica.damage import Fate
from angarium.replica.peers import EntriesRequest
from angarium.replica.scrutiny import Objection
from angarium.replica.work import do_now

if TYPE_CHECKING:
    import pytest

    from angarium.ids import NodeId
    from angarium.replica.host import Host
    from angarium.replica.partition_replica import PartitionReplica


def follower_of(hosts: Hosts) -> tuple[Host, PartitionReplica, PartitionReplica]:
    hosts.form()
    hosts.publish(b"acknowledged")
    leader = hosts.leader()
    host = next(one for one in hosts.hosts.values() if one.replicas[GROUP].id != leader.id)
    return host, host.replicas[GROUP], leader


def contradict(host: Host, replica: PartitionReplica, leader: PartitionReplica) -> None:
    """Let the leader say that another entry is committed where one is committed here."""
    index = replica.raft.commit
    host.deliver(
        GROUP,
        Message(
            kind=MessageKind.APPEND,
            to=replica.id,
            sender=leader.id,
            term=leader.raft.term,
            index=index,
            log_term=leader.raft.term - 1,  # type: ignore[arg-type]
            commit=index,
        ),
        via=leader.id,
    )


def test_an_answer_above_the_leaders_log_is_said_loudly_and_counts_for_nothing() -> None:
    hosts = Hosts(3)
    _, replica, leader = follower_of(hosts)
    host = next(one for one in hosts.hosts.values() if one.replicas[GROUP] is leader)
    more = Message(
        kind=MessageKind.APPEND_RESPONSE,
        to=leader.id,
        sender=replica.id,
        term=leader.raft.term,
        index=leader.raft.last_index + 5,  # type: ignore[arg-type]
    )
    for _ in range(3):
        host.deliver(GROUP, more, via=replica.id)
    assert leader.raft.match(replica.id) == leader.raft.last_index
    assert host.outbox.refusals.counts == {Objection.INDEX: 3}
    ((fate, group, words),) = hosts.heard[node_of(host.id)].damage
    assert (fate, group) == (Fate.CONTRADICTED, GROUP), "once is enough"
    assert "older copy" in words


def test_one_that_has_stopped_gives_nobody_what_it_has() -> None:
    host, replica, leader = follower_of(Hosts(3))
    contradict(host, replica, leader)
    assert "older copy" in replica.halted
    host.outbox.take_peer_messages()
    asked = EntriesRequest(GROUP, leader.id, replica.id, replica.raft.commit, replica.raft.commit)
    host.deliver_from_peer(asked, via=leader.id)
    assert host.outbox.take_peer_messages() == []


def test_a_contradiction_that_a_copied_snapshot_shows_costs_no_data_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, replica, leader = follower_of(Hosts(3))

    def receive(_: object) -> None:
        raise LogContradiction("entry 3 is committed here with term 1")

    monkeypatch.setattr(replica, "receive_from_peer", receive)
    asked = EntriesRequest(GROUP, leader.id, replica.id, replica.raft.commit, replica.raft.commit)
    host.deliver_from_peer(asked, via=leader.id)
    assert replica.halted
    assert host.replicas[GROUP] is replica
    assert not host.lost


def node_with(hosts: Hosts, host: Host) -> NodeId:
    return next(node for node, one in hosts.hosts.items() if one is host)


def halted_host() -> tuple[Hosts, NodeId]:
    hosts = Hosts(3)
    host, replica, leader = follower_of(hosts)
    node = node_with(hosts, host)
    contradict(host, replica, leader)
    hosts.settle()
    return hosts, node


def test_one_that_has_stopped_is_still_stopped_after_a_restart() -> None:
    hosts, node = halted_host()
    words = hosts.hosts[node].replicas[GROUP].halted
    hosts.hosts[node].close()
    host = hosts.open(node)
    assert host.replicas[GROUP].halted == words
    assert host.replicas[GROUP].unready() == words
    # Neither does it ever look for votes of its own …
    for _ in range(50):
        host.tick()
    assert host.outbox.take_raft_messages() == []
    # … nor has the group a majority through it.
    leader = hosts.leader()
    third = next(one for one in hosts.hosts if one not in (node, node_of(leader.id)))
    hosts.cut.add(third)
    assert hosts.publish(b"who has this?") == []


def test_one_that_had_no_room_to_write_down_that_it_has_stopped_does_it_later() -> None:
    hosts = Hosts(3)
    host, replica, leader = follower_of(hosts)
    node = node_with(hosts, host)
    disk = hosts.disks[node]
    room, disk.capacity_bytes = disk.capacity_bytes, 0
    contradict(host, replica, leader)
    assert replica.halted
    disk.capacity_bytes = room
    hosts.maintain(node)
    assert hosts.open(node).replicas[GROUP].halted == replica.halted


def test_the_log_of_one_that_has_stopped_is_not_shortened() -> None:
    hosts, node = halted_host()
    host = hosts.hosts[node]
    replica = host.replicas[GROUP]
    first = host.wal.log(GROUP).first_index()
    do_now(replica.shorten_log(is_patient=False))
    assert host.wal.log(GROUP).first_index() == first


def test_a_damaged_log_of_one_that_has_stopped_is_neither_filled_nor_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts, node = halted_host()
    monkeypatch.setattr(roster, "entries_to_refetch", lambda *_, **__: (Index(2), Index(3)))
    host = hosts.open(node)
    assert not host.repairs
    assert not host.may_renew(GROUP)
    assert "older copy" in str(host.lost[GROUP])


def test_one_that_was_taken_away_may_come_back_as_anybody() -> None:
    hosts, node = halted_host()
    hosts.hosts[node].remove_group(GROUP)
    hosts.settle()
    assert not hosts.disks[node].list("halted")
    host = hosts.open(node)
    host.join_group(GROUP)
    host.wal.sync()
    assert not hosts.open(node).replicas[GROUP].halted
