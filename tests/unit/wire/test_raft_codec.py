"""Raft messages in frames: every kind round-trips, data is not copied, hostile bytes refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.errors import LimitExceeded
from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.raft.messages import ConfState, Entry, EntryKind, Message, MessageKind, Snapshot
from angarium.wire import InvalidFrame
from angarium.wire.raft_codec import (
    FRAME_BYTES_AIM,
    MESSAGES_PER_FRAME_MAX,
    RECORDS_BYTES_MAX,
    TRAVELLING,
    Addressed,
    packed_messages,
    unpacked_messages,
)

FRAME_MAX = 64 * 1024 * 1024

naturals = st.integers(0, 2**63 - 1)
entries = st.builds(
    Entry,
    naturals.map(Term),
    naturals.map(Index),
    st.binary(max_size=40),
    st.sampled_from(EntryKind),
)
members = st.lists(st.integers(1, 2**63 - 1).map(ReplicaId), max_size=4).map(tuple)
snapshots = st.builds(
    Snapshot,
    naturals.map(Index),
    naturals.map(Term),
    st.builds(ConfState, members, members, members, members, st.booleans()),
    st.binary(max_size=40),
)
messages = st.builds(
    Message,
    kind=st.sampled_from(sorted(TRAVELLING)),
    to=naturals.map(ReplicaId),
    sender=naturals.map(ReplicaId),
    term=naturals.map(Term),
    log_term=naturals.map(Term),
    index=naturals.map(Index),
    entries=st.lists(entries, max_size=4).map(tuple),
    commit=naturals.map(Index),
    vote=naturals.map(ReplicaId),
    snapshot=st.none() | snapshots,
    reject=st.booleans(),
    reject_hint=naturals.map(Index),
    context=st.binary(max_size=30),
)
addressed = st.tuples(naturals.map(RaftGroupId), messages)


def over_the_wire(given: list[Addressed], frame_bytes_max: int = FRAME_MAX) -> list[Addressed]:
    arrived = []
    for header, payload, _ in packed_messages(given, frame_bytes_max=frame_bytes_max):
        arrived += unpacked_messages(header, memoryview(b"".join(payload)))
    return arrived


def one_frame(given: list[Addressed]) -> tuple[bytes, bytes]:
    ((header, payload, _),) = packed_messages(given, frame_bytes_max=FRAME_MAX)
    return header, b"".join(payload)


@settings(max_examples=80)
@given(st.lists(addressed, max_size=5))
def test_messages_of_many_groups_round_trip(given_messages: list[Addressed]) -> None:
    assert over_the_wire(given_messages) == given_messages


@pytest.mark.parametrize("kind", sorted(TRAVELLING))
def test_every_kind_that_travels_round_trips(kind: MessageKind) -> None:
    message = Message(
        kind=kind,
        to=ReplicaId(1),
        sender=ReplicaId(2),
        term=Term(3),
        log_term=Term(4),
        index=Index(5),
        entries=(Entry(Term(3), Index(6), b"data"), Entry(Term(3), Index(7))),
        commit=Index(6),
        vote=ReplicaId(7),
        snapshot=Snapshot(Index(8), Term(9), ConfState(voters=(ReplicaId(1),)), b"state"),
        reject=True,
        reject_hint=Index(10),
        context=b"context",
    )
    assert over_the_wire([(RaftGroupId(4), message)]) == [(RaftGroupId(4), message)]


@pytest.mark.parametrize("kind", sorted(set(MessageKind) - TRAVELLING))
def test_what_a_replica_says_to_itself_is_refused_from_a_peer(kind: MessageKind) -> None:
    _, payload = one_frame([(RaftGroupId(1), Message(kind=MessageKind.APPEND))])
    records = msgspec.msgpack.decode(payload)
    records[0][1] = int(kind)
    packed = msgspec.msgpack.encode(records)
    with pytest.raises(InvalidFrame, match=kind.name):
        unpacked_messages(len(packed).to_bytes(4, "little"), memoryview(packed))


def test_data_is_not_copied_on_the_way_out_and_a_view_on_the_way_in() -> None:
    data = bytearray(b"d" * 1000)
    message = Message(kind=MessageKind.APPEND, entries=(Entry(Term(1), Index(1), data),))
    ((header, payload, _),) = packed_messages(
        [(RaftGroupId(1), message)], frame_bytes_max=FRAME_MAX
    )
    assert payload[1] is data
    frame = memoryview(b"".join(payload))
    ((_, arrived),) = unpacked_messages(header, frame)
    view = arrived.entries[0].data
    assert isinstance(view, memoryview)
    assert view.obj is frame.obj


def test_heartbeats_of_a_thousand_groups_fit_one_frame() -> None:
    heartbeat = Message(
        kind=MessageKind.HEARTBEAT, to=ReplicaId(2**62), sender=ReplicaId(2**62), term=Term(9)
    )
    beats = [(RaftGroupId(group), heartbeat) for group in range(1000)]
    assert len(list(packed_messages(beats, frame_bytes_max=FRAME_MAX))) == 1
    assert over_the_wire(beats) == beats


def test_more_messages_than_a_frame_takes_go_into_the_next() -> None:
    beat = Message(kind=MessageKind.HEARTBEAT)
    beats = [(RaftGroupId(group), beat) for group in range(MESSAGES_PER_FRAME_MAX * 2 + 1)]
    frames = list(packed_messages(beats, frame_bytes_max=FRAME_MAX))
    assert [frame.message_count for frame in frames] == [MESSAGES_PER_FRAME_MAX] * 2 + [1]
    assert over_the_wire(beats) == beats


def test_large_appends_are_spread_over_frames_in_their_order() -> None:
    half = bytes(FRAME_BYTES_AIM // 2)
    appends = [
        (
            RaftGroupId(group),
            Message(kind=MessageKind.APPEND, entries=(Entry(Term(1), Index(1), half),)),
        )
        for group in range(5)
    ]
    assert len(list(packed_messages(appends, frame_bytes_max=FRAME_MAX))) == 5
    assert over_the_wire(appends) == appends


def test_a_message_too_large_for_any_frame_is_left_out_and_told_of_at_the_end() -> None:
    beat = Message(kind=MessageKind.HEARTBEAT)
    large = Message(kind=MessageKind.APPEND, entries=(Entry(Term(1), Index(1), bytes(70_000)),))
    given_messages = [(RaftGroupId(1), beat), (RaftGroupId(2), large), (RaftGroupId(3), beat)]
    frames = packed_messages(given_messages, frame_bytes_max=64 * 1024)
    frame = next(frames)
    assert frame.message_count == 2
    arrived = unpacked_messages(frame.header, memoryview(b"".join(frame.payload)))
    assert arrived == [given_messages[0], given_messages[2]]
    with pytest.raises(LimitExceeded, match="frame_bytes_max"):
        next(frames)


def test_an_append_of_as_many_entries_as_raft_sends_at_once_fits() -> None:
    entry = Entry(Term(2**62), Index(2**62), b"", EntryKind.CONF_CHANGE_V2)
    message = Message(kind=MessageKind.APPEND, entries=(entry,) * 65_536)
    header, payload = one_frame([(RaftGroupId(1), message)])
    assert len(payload) < RECORDS_BYTES_MAX
    assert len(unpacked_messages(header, memoryview(payload))[0][1].entries) == 65_536
    too_many = Message(kind=MessageKind.APPEND, entries=(entry,) * 200_000)
    with pytest.raises(LimitExceeded, match="records_bytes_max"):
        one_frame([(RaftGroupId(1), too_many)])


@given(st.binary(max_size=80), st.binary(max_size=200))
def test_any_bytes_are_messages_or_a_typed_error(header: bytes, payload: bytes) -> None:
    for length in (header, len(payload).to_bytes(4, "little"), b"\x00\x00\x00\x00"):
        try:
            unpacked_messages(length, memoryview(payload))
        except InvalidFrame:
            continue


@settings(max_examples=150)
@given(st.lists(addressed, min_size=1, max_size=2), st.data())
def test_damaged_records_are_messages_or_a_typed_error(
    given_messages: list[Addressed], data: st.DataObject
) -> None:
    header, payload = one_frame(given_messages)
    hostile = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 3))):
        hostile[data.draw(st.integers(0, len(hostile) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(hostile)))
    for view in (memoryview(hostile), memoryview(hostile)[:cut]):
        try:
            unpacked_messages(header, view)
        except InvalidFrame:
            continue


def test_data_that_is_missing_or_left_over_is_refused() -> None:
    message = Message(kind=MessageKind.APPEND, entries=(Entry(Term(1), Index(1), b"12345"),))
    header, payload = one_frame([(RaftGroupId(1), message)])
    with pytest.raises(InvalidFrame, match="more data than"):
        unpacked_messages(header, memoryview(payload[:-1]))
    with pytest.raises(InvalidFrame, match="belongs to no message"):
        unpacked_messages(header, memoryview(payload + b"x"))
