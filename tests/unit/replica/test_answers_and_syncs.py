"""Which answers cost a sync, and which leave with one that happens anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.unit.replica.hosts import GROUP, Hosts

from angarium.raft.messages import Message, MessageKind
from angarium.replica.host import Host
from angarium.replica.outbox import Outbox
from angarium.replica.replica import Replica

if TYPE_CHECKING:
    import pytest

    from angarium.replica.host import Sync

NOBODY = cast(Replica, None)
FIRST, SECOND, THIRD = ((cast(Message, name),) for name in ("first", "second", "third"))


def test_hearing_of_a_commit_costs_no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    hosts.publish(b"a")
    counts = {host.id: 0 for host in hosts.hosts.values()}
    finish_sync = Host.finish_sync

    def counted(host: Host, sync: Sync) -> None:
        counts[host.id] += 1
        finish_sync(host, sync)

    monkeypatch.setattr(Host, "finish_sync", counted)
    for number in range(5):
        hosts.publish(b"b", now=2 + number)
    assert counts == dict.fromkeys(counts, 5)
    ends = {host.replicas[GROUP].end_offset for host in hosts.hosts.values()}
    assert ends == {leader.end_offset}, "everybody has heard that the last one is committed, too"


def test_an_answer_to_an_empty_append_waits_for_the_entries_before_it() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    hosts.publish(b"a")
    follower = next(host for host in hosts.hosts.values() if host.id != leader.id)
    hosts.cut = {node for node, host in hosts.hosts.items() if host.id != leader.id}
    hosts.publish(b"b", now=2)
    replica = follower.replicas[GROUP]
    entries = tuple(leader.raft.entries_after(leader.applied))
    append = Message(
        kind=MessageKind.APPEND,
        to=follower.id,
        sender=leader.id,
        term=leader.raft.term,
        index=leader.applied,
        log_term=leader.raft.term,
        commit=leader.applied,
        entries=entries,
    )
    follower.deliver(GROUP, append, via=append.sender)
    sync = follower.begin_sync()
    assert sync is not None
    # Nothing new, but the answer speaks of entries whose sync is under way.
    last = Message(
        kind=MessageKind.APPEND,
        to=follower.id,
        sender=leader.id,
        term=leader.raft.term,
        index=replica.last_index,
        log_term=leader.raft.term,
        commit=replica.last_index,
    )
    follower.deliver(GROUP, last, via=last.sender)
    assert follower.outbox.take_raft_messages() == []
    sync.write()
    follower.finish_sync(sync)
    answered = [message.index for _, message in follower.outbox.take_raft_messages()]
    assert answered == [replica.last_index] * 2
    assert follower.begin_sync() is None, "the second answer left with the first"


def test_answers_join_the_sync_they_depend_on() -> None:
    outbox = Outbox()
    first = outbox.after_sync(NOBODY, FIRST)
    assert outbox.once_synced(first, NOBODY, SECOND), "it waits with the first"
    under_way = outbox.take_waiting()
    assert outbox.once_synced(first, NOBODY, THIRD), "the sync has begun, and covers it"
    assert [one for _, one in under_way] == [FIRST, SECOND, THIRD]
    assert outbox.waiting_for_sync == []
    outbox.sync_done()
    assert not outbox.once_synced(first, NOBODY, SECOND), "what it depends on is on disk"
    assert outbox.next_sync == first + 1
