"""Asynchronous storage writes: what may overlap, and what must wait for the disk."""

from __future__ import annotations

from tests.unit.raft.cluster import Cluster, a_replica

from angarium.ids import Index, ReplicaId, Term
from angarium.raft import APPEND_THREAD, APPLY_THREAD, Entry, HardState, Message, MessageKind


def _append(term: int, prev: tuple[int, int], *terms: int, commit: int = 0) -> Message:
    return Message(
        kind=MessageKind.APPEND,
        to=ReplicaId(1),
        sender=ReplicaId(term),  # a new leader in each term
        term=Term(term),
        index=Index(prev[0]),
        log_term=Term(prev[1]),
        entries=tuple(Entry(Term(t), Index(i)) for i, t in enumerate(terms, start=prev[0] + 1)),
        commit=Index(commit),
    )


def test_an_acknowledgement_waits_for_the_disk() -> None:
    member = a_replica(async_storage_writes=True)
    member.node.step(_append(2, (0, 0), 2))
    ready = member.node.ready()
    assert ready.must_sync
    (task,) = ready.messages
    assert (task.kind, task.to) == (MessageKind.STORAGE_APPEND, APPEND_THREAD)
    assert HardState(task.term, task.vote, task.commit) == ready.hard_state
    assert task.entries == ready.entries
    assert [(m.kind, m.to) for m in task.responses] == [
        (MessageKind.APPEND_RESPONSE, 2),
        (MessageKind.STORAGE_APPEND_RESPONSE, 1),
    ]


def test_writes_follow_each_other_without_waiting() -> None:
    cluster = Cluster(async_storage_writes=True)
    cluster.elect(1)
    for data in (b"a", b"b", b"c"):
        cluster[1].propose([data])
        cluster.handle_ready(1)
    tasks = cluster.replicas[1].append_work
    assert [[bytes(e.data) for e in t.entries] for t in tasks] == [[b"a"], [b"b"], [b"c"]]
    cluster.settle()
    assert all(r.data() == [b"a", b"b", b"c"] for r in cluster.replicas.values())


def test_a_leaders_own_copy_counts_only_when_it_is_on_disk() -> None:
    cluster = Cluster(2, async_storage_writes=True)
    cluster.elect(1)
    cluster[1].propose([b"x"])
    cluster.handle_ready(1)
    cluster.deliver()
    cluster.handle(2)
    cluster.deliver()
    assert cluster[1].status().progress[ReplicaId(2)].match == cluster[1].last_index
    assert cluster[1].commit < cluster[1].last_index
    cluster.handle_append(1)
    assert cluster[1].commit == cluster[1].last_index


def test_the_others_can_commit_without_the_leaders_disk() -> None:
    """Thesis, section 10.2.1: the leader writes in parallel, and may be the slow one."""
    cluster = Cluster(async_storage_writes=True)
    cluster.elect(1)
    cluster[1].propose([b"x"])
    cluster.handle_ready(1)
    cluster.deliver()
    cluster.handle(2)
    cluster.handle(3)
    cluster.deliver()
    assert cluster[1].commit == cluster[1].last_index
    ready = cluster[1].ready()
    assert not [m for m in ready.messages if m.to == APPLY_THREAD], "nothing is applied unwritten"


def test_a_crash_loses_what_was_not_written_and_nothing_that_was_promised() -> None:
    cluster = Cluster(async_storage_writes=True)
    cluster.elect(1)
    cluster.propose(1, b"kept")
    cluster[1].propose([b"lost"])
    cluster.handle_ready(1)
    cluster.in_flight.clear()
    cluster.crash(1)
    cluster.restart(1)
    assert [d for _, d in cluster.replicas[1].log() if d] == [b"kept"]
    cluster.elect(2)
    cluster.propose(2, b"more")
    assert cluster.replicas[1].data() == [b"kept", b"more"]


def test_a_late_report_does_not_uncover_entries_still_to_be_overwritten() -> None:
    """The ABA race: 1 takes entries of term 2, then 3, then those of term 2 again, in term 4.

    The report of the first write matches what the log holds now, but the disk will have the
    entries of term 3 in between. Only a report made in the present term counts.
    """
    member = a_replica(voters=range(1, 6), log=[1], async_storage_writes=True)
    tasks = []
    for message in (
        _append(2, (1, 1), 2),
        _append(3, (1, 1), 3),
        _append(4, (1, 1), 2),
    ):
        member.node.step(message)
        tasks += [m for m in member.node.ready().messages if m.to == APPEND_THREAD]
    assert [[e.term for e in t.entries] for t in tasks] == [[2], [3], [2]]
    believed = []
    for task in tasks:
        member.write(None, task.entries)
        for response in task.responses:
            if response.to == 1:
                member.node.step(response)
        believed.append(not member.node._core.log.has_unwritten)
        assert [e.term for e in member.entries()] == [1, 2], "the log always reads the same"
    assert believed == [False, False, True]


def test_a_new_term_brings_a_report_for_what_was_disbelieved() -> None:
    member = a_replica(log=[1], async_storage_writes=True)
    member.node.step(_append(2, (1, 1), 2))
    (first,) = member.node.ready().messages
    member.node.step(Message(kind=MessageKind.HEARTBEAT, sender=ReplicaId(3), term=Term(3)))
    (second,) = [m for m in member.node.ready().messages if m.to == APPEND_THREAD]
    assert second.entries == ()
    for task in (first, second):
        member.write(None, task.entries)
        for response in task.responses:
            if response.to == 1:
                member.node.step(response)
    assert not member.node._core.log.has_unwritten


def test_committed_entries_are_applied_once_and_in_order() -> None:
    cluster = Cluster(async_storage_writes=True)
    cluster.elect(1)
    for number in range(5):
        cluster[1].propose([b"%d" % number])
        cluster.handle(1)
        cluster.deliver()
    cluster.settle()
    for replica in cluster.replicas.values():
        assert [e.index for e in replica.applied] == list(range(2, 8))
        assert replica.node.applied == 7
