"""Entries that a leader does not send at once: they go together with others, and never get lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.raft.cluster import Cluster, sent

from angarium.ids import ReplicaId
from angarium.raft import MessageKind

if TYPE_CHECKING:
    from angarium.raft.messages import Message


def appends(cluster: Cluster) -> list[Message]:
    """Let the leader say what it has to say; return the entries that leave with it."""
    cluster.handle(1)
    return [m for m in sent(cluster.in_flight, MessageKind.APPEND) if m.entries]


def holds(cluster: Cluster) -> bool:
    return cluster[1].holds_entries


def test_held_entries_leave_together() -> None:
    cluster = Cluster()
    cluster.elect(1)
    for number in range(3):
        cluster[1].propose([b"%d" % number], at_once=False)
    assert holds(cluster)
    assert appends(cluster) == []
    cluster[1].send_held()
    assert not holds(cluster)
    assert [len(m.entries) for m in appends(cluster)] == [3, 3], "one message for each follower"
    cluster.settle()
    assert [one.data() for one in cluster.replicas.values()] == [[b"0", b"1", b"2"]] * 3


def test_an_entry_that_is_sent_at_once_takes_held_ones_along() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].propose([b"held"], at_once=False)
    cluster[1].propose([b"urgent"])
    assert not holds(cluster)
    cluster.settle()
    assert cluster.replicas[2].data() == [b"held", b"urgent"]


def test_acknowledgements_of_earlier_entries_let_no_held_one_out() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].propose([b"first"])
    cluster[1].propose([b"held"], at_once=False)
    cluster.settle()
    assert cluster.replicas[1].data() == [b"first"], "committed without what is held back"
    assert holds(cluster)
    cluster[1].send_held()
    cluster.settle()
    assert cluster.replicas[3].data() == [b"first", b"held"]


def test_nothing_is_held_beyond_a_heartbeat() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].propose([b"held"], at_once=False)
    cluster.tick(1)
    cluster.settle()
    assert cluster.replicas[2].data() == [b"held"]
    assert not holds(cluster)


def test_a_successor_is_given_held_entries() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].propose([b"held"], at_once=False)
    cluster[1].transfer_leader(ReplicaId(2))
    cluster.settle()
    assert cluster[2].is_leader
    assert cluster.replicas[3].data() == [b"held"]


def test_a_deposed_leader_holds_nothing() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster[1].propose([b"held"], at_once=False)
    cluster.elect(2)
    cluster.heal()
    cluster.tick(2)
    cluster.settle()
    assert not holds(cluster)
    cluster[1].send_held()
    cluster.settle()
    assert [one.data() for one in cluster.replicas.values()] == [[], [], []]


def test_a_leader_on_its_own_commits_what_it_holds() -> None:
    cluster = Cluster(1)
    cluster.elect(1)
    cluster[1].propose([b"held"], at_once=False)
    cluster.settle()
    assert cluster.replicas[1].data() == [b"held"]
