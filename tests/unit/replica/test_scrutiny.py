"""Nothing that a peer could not have said reaches a Raft core, and none of it ends anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.replica.hosts import GROUP, Hosts

from angarium.ids import CATALOG_GROUP, Incarnation, Index, NodeId, Offset, Term, replica_id
from angarium.raft.messages import ConfState, Entry, EntryKind, Message, MessageKind, Snapshot
from angarium.replica.peers import (
    ChunkReply,
    ChunkRequest,
    EntriesReply,
    EntriesRequest,
    FramesReply,
    FramesRequest,
    Rest,
    Vouch,
)
from angarium.replica.scrutiny import TERM_JUMP_MAX, Objection, objection_to
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from angarium.raft import RaftNode
    from angarium.replica.host import Host

pytestmark = pytest.mark.timeout(900)
"""Hundreds of groups are formed: a minute, and many where nine want each processor."""

OUTSIDER = replica_id(NodeId(77), Incarnation(5))


def group_of_three() -> tuple[Host, RaftNode, RaftNode]:
    """Return a follower's host, its core and its leader's."""
    hosts = Hosts(3)
    hosts.form()
    leader = hosts.leader().raft
    (follower,) = [
        host for host in hosts.hosts.values() if host.replicas[GROUP].raft.id != leader.id
    ][:1]
    return follower, follower.replicas[GROUP].raft, leader


def said(kind: MessageKind, raft: RaftNode, sender: int, **parts: Any) -> Message:
    """Return a message to `raft` in its own term, unless said otherwise."""
    return Message(kind=kind, to=raft.id, sender=sender, **{"term": raft.term, **parts})  # type: ignore[arg-type]


def test_what_cannot_be_is_objected_to() -> None:
    _, raft, leader = group_of_three()
    last, term = raft.last_index, raft.term
    other = next(one for one in raft.conf_state.voters if one not in (raft.id, leader.id))
    heartbeat, append = MessageKind.HEARTBEAT, MessageKind.APPEND
    wild = (Entry(term, Index(last + 2)),)
    newer = (Entry(Term(term + 1), Index(last + 1)),)
    nobody = Snapshot(Index(last + 1), term, ConfState(), b"")
    expected = {
        said(MessageKind.PROPOSE, raft, leader.id): Objection.KIND,
        said(MessageKind.TRANSFER_LEADER, raft, leader.id): Objection.KIND,
        said(MessageKind.READ_INDEX, raft, leader.id): Objection.KIND,
        said(heartbeat, raft, leader.id, term=0): Objection.TERM,
        said(heartbeat, raft, leader.id, term=2**63 - 1): Objection.TERM,
        said(heartbeat, raft, leader.id, term=term + TERM_JUMP_MAX + 1): Objection.TERM,
        said(MessageKind.VOTE, raft, leader.id, log_term=term + 1): Objection.TERM,
        said(heartbeat, raft, leader.id, commit=last + 1): Objection.COMMIT,
        said(heartbeat, raft, other): Objection.LEADER,
        said(append, raft, leader.id, index=last, log_term=term, entries=wild): Objection.CONTENT,
        said(append, raft, leader.id, index=last, log_term=term, entries=newer): Objection.CONTENT,
        said(heartbeat, raft, leader.id, entries=newer): Objection.CONTENT,
        said(append, raft, leader.id, index=2**61): Objection.INDEX,
        said(MessageKind.SNAPSHOT, raft, leader.id): Objection.CONTENT,
        said(MessageKind.SNAPSHOT, raft, leader.id, snapshot=nobody): Objection.CONTENT,
    }
    for message, objection in expected.items():
        assert objection_to(message, raft) is objection, message
    assert objection_to(said(heartbeat, raft, leader.id, commit=last), raft) is None
    ahead = said(heartbeat, raft, other, term=term + TERM_JUMP_MAX)
    assert objection_to(ahead, raft) is None


def test_only_who_greeted_may_speak_and_only_to_us() -> None:
    host, raft, leader = group_of_three()
    before = raft.status()
    vote = said(MessageKind.VOTE, raft, leader.id, term=raft.term + 1, index=raft.last_index + 1)
    host.deliver(GROUP, vote, via=OUTSIDER)
    elsewhere = Message(kind=MessageKind.VOTE, to=leader.id, sender=OUTSIDER, term=Term(9))
    host.deliver(GROUP, elsewhere, via=OUTSIDER)
    host.deliver_from_peer(
        Rest(GROUP, leader.id, raft.id, raft.term, raft.last_index), via=OUTSIDER
    )
    assert host.outbox.refusals.counts == {Objection.SENDER: 3}
    assert raft.status() == before
    # What was meant for an earlier incarnation of this node is late, and no lie.
    earlier = replica_id(NodeId(raft.id >> 48), Incarnation(4))
    host.deliver(GROUP, Message(kind=MessageKind.VOTE, to=earlier, sender=leader.id), via=leader.id)
    assert host.outbox.refusals.counts == {Objection.SENDER: 3}


naturals: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 40), st.sampled_from([2**24, 2**60, 2**62, 2**63 - 1])
)
entries = st.lists(
    st.builds(Entry, naturals, naturals, st.binary(max_size=9), st.sampled_from(EntryKind)),
    max_size=3,
).map(tuple)
snapshots = st.none() | st.builds(
    Snapshot,
    naturals,
    naturals,
    st.builds(ConfState, voters=st.lists(naturals, max_size=3).map(tuple)),
    st.binary(max_size=20),
)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_message_from_a_member_breaks_a_host(data: st.DataObject) -> None:
    host, raft, leader = group_of_three()
    for _ in range(5):
        message = Message(
            kind=data.draw(st.sampled_from(MessageKind)),
            to=raft.id,
            sender=leader.id,
            term=data.draw(naturals),
            log_term=data.draw(naturals),
            index=data.draw(naturals),
            entries=data.draw(entries),
            commit=data.draw(naturals),
            snapshot=data.draw(snapshots),
            reject=data.draw(st.booleans()),
            reject_hint=data.draw(naturals),
            context=data.draw(st.binary(max_size=9)),
        )
        host.deliver(GROUP, message, via=leader.id)
        for chore in host.outbox.take_chores():
            do_now(chore)  # hands what goes wrong back to it, as a node does
        sync = host.begin_sync()
        if sync is not None:
            sync.write()
            host.finish_sync(sync)
        host.tick()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_nothing_said_beside_raft_breaks_a_host(data: st.DataObject) -> None:
    host, raft, leader = group_of_three()
    number = naturals.filter(lambda one: one <= 1 << 62)
    blob = st.binary(max_size=40)
    packed = st.lists(st.tuples(number, number, st.sampled_from(EntryKind), blob), max_size=3)
    parts: dict[type, Any] = {
        ChunkRequest: (number, number, number, number, st.booleans()),
        ChunkReply: (number, number, number, blob, st.booleans()),
        EntriesRequest: (number, number),
        EntriesReply: (number, packed.map(tuple), st.booleans()),
        Rest: (number, number),
        FramesRequest: (number, number),
        FramesReply: (number, st.lists(blob, max_size=2).map(tuple), st.booleans()),
    }
    kind = data.draw(st.sampled_from(list(parts)))
    told = kind(GROUP, leader.id, raft.id, *map(data.draw, parts[kind]))
    host.deliver_from_peer(told, via=leader.id)
    host.deliver_from_peer(Vouch(leader.id, raft.id, CATALOG_GROUP), via=leader.id)
    host.tick()


@pytest.mark.parametrize("length", [0, 1_000])
def test_a_chunk_of_another_length_than_asked_for_is_not_written(length: int) -> None:
    host, raft, leader = group_of_three()
    reply = ChunkReply(GROUP, leader.id, raft.id, Index(1), Offset(0), 0, bytes(length))
    host.deliver_from_peer(reply, via=leader.id)
    assert not host.outbox.take_chores()
