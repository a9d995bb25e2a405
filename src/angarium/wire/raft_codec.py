"""Raft messages as frames: those of many groups for one peer in a single one.

A frame's payload begins with the *records*: one msgpack array per message, with an array per entry
inside. Entries' and snapshots' data follow, in the order of the records: on the way out the
caller's own buffers, on the way in views into the frame. The header is the length of the records.

A message's `responses`, and the kinds that a replica sends only to itself, never travel; from a
peer they are refused. `docs/reference/wire.md` has the layout and why it is msgpack: fixed-size
structs were measured and are slower.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from angarium.errors import LimitExceeded
from angarium.ids import GroupId, Index, ReplicaId, Term
from angarium.raft.messages import ConfState, Entry, EntryKind, Message, MessageKind, Snapshot
from angarium.wire.errors import InvalidFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from angarium.ids import Buffer

RAFT_OPERATION: Final = 1
"""The operation number of one-way messages with Raft traffic."""

MESSAGES_PER_FRAME_MAX: Final = 4_096
"""More messages go into a further frame. A frame with more of them is refused."""

RECORDS_BYTES_MAX: Final = 4 * 1024 * 1024
"""The records of one frame; more go into a further frame, and a frame with more is refused. An
append of Raft's `message_bytes_max` (1 MiB, 16 bytes of which each entry counts beside its data)
has at most 65,536 entries, which need half of this."""

FRAME_BYTES_AIM: Final = 1024 * 1024
"""A frame this large takes no further message, so that its receiver gets to work early."""

TRAVELLING: Final = frozenset(
    {
        MessageKind.PROPOSE,
        MessageKind.APPEND,
        MessageKind.APPEND_RESPONSE,
        MessageKind.HEARTBEAT,
        MessageKind.HEARTBEAT_RESPONSE,
        MessageKind.VOTE,
        MessageKind.VOTE_RESPONSE,
        MessageKind.PRE_VOTE,
        MessageKind.PRE_VOTE_RESPONSE,
        MessageKind.SNAPSHOT,
        MessageKind.TRANSFER_LEADER,
        MessageKind.TIMEOUT_NOW,
        MessageKind.READ_INDEX,
        MessageKind.READ_INDEX_RESPONSE,
    }
)
"""What replicas say to each other; everything else a replica says only to itself."""

_RECORDS_LENGTH: Final = Struct("<I")

# Upper bounds of what a record takes: nine bytes for each number, and the arrays around them.
_MESSAGE_RECORD_BYTES: Final = 112
_ENTRY_RECORD_BYTES: Final = 30
_SNAPSHOT_RECORD_BYTES: Final = 32
_PREFIX_AND_HEADER_BYTES: Final = 32

_Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_EntryRecord = tuple[_Natural, _Natural, _Natural, EntryKind]
"""term · index · bytes of data · kind"""
_SnapshotRecord = tuple[_Natural, _Natural, _Natural, ConfState]
"""index · term · bytes of data · membership"""
_MessageRecord = tuple[
    _Natural,  # group
    MessageKind,
    _Natural,  # to
    _Natural,  # sender
    _Natural,  # term
    _Natural,  # log term
    _Natural,  # index
    _Natural,  # commit
    _Natural,  # vote
    bool,  # reject
    _Natural,  # reject hint
    bytes,  # context
    list[_EntryRecord],
    _SnapshotRecord | None,
]
_Records = Annotated[list[_MessageRecord], msgspec.Meta(max_length=MESSAGES_PER_FRAME_MAX)]

_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder[list[_MessageRecord]](_Records).decode

Addressed = tuple[GroupId, Message]
"""A message and the group it is about."""


def packed_messages(
    messages: Iterable[Addressed], *, frame_bytes_max: int
) -> Iterator[tuple[bytes, list[Buffer]]]:
    """Yield header and payload of as few frames as hold `messages`, in their order.

    Raises `LimitExceeded` for a message that no frame may hold; those before it were yielded.
    """
    records: list[object] = []
    payload: list[Buffer] = [b""]
    records_bytes = data_bytes = 0
    for group, message in messages:
        record_bytes, size = _size_bounds(message)
        if records and (
            records_bytes + data_bytes + record_bytes + size > FRAME_BYTES_AIM
            or len(records) == MESSAGES_PER_FRAME_MAX
        ):
            yield _frame(records, payload)
            records, payload = [], [b""]
            records_bytes = data_bytes = 0
        _check_size(record_bytes, size, frame_bytes_max)
        records.append(_record(group, message, payload))
        records_bytes += record_bytes
        data_bytes += size
    if records:
        yield _frame(records, payload)


def unpacked_messages(header: bytes, payload: memoryview) -> list[Addressed]:
    """Return the messages of a frame; their data are views into `payload`.

    Raises `InvalidFrame` for anything that `packed_messages` would not have made.
    """
    records, at = _unpacked_records(header, payload)
    end = len(payload)
    messages: list[Addressed] = []
    for (
        group,
        kind,
        to,
        sender,
        term,
        log_term,
        index,
        commit,
        vote,
        reject,
        reject_hint,
        context,
        entry_records,
        snapshot_record,
    ) in records:
        if kind not in TRAVELLING:
            raise InvalidFrame(f"Raft messages of kind {kind.name} do not travel")
        entries: tuple[Entry, ...] = ()
        if entry_records:
            found = []
            for entry_term, entry_index, size, entry_kind in entry_records:
                data = payload[at : at + size] if size else b""
                found.append(Entry(Term(entry_term), Index(entry_index), data, entry_kind))
                at += size
            entries = tuple(found)
        snapshot = None
        if snapshot_record is not None:
            snapshot_index, snapshot_term, size, members = snapshot_record
            data = payload[at : at + size] if size else b""
            snapshot = Snapshot(Index(snapshot_index), Term(snapshot_term), members, data)
            at += size
        # A slice past the end is only shorter, never an error: one check here is enough.
        if at > end:
            raise InvalidFrame("a Raft message counts more data than its frame has")
        message = Message(
            kind=kind,
            to=ReplicaId(to),
            sender=ReplicaId(sender),
            term=Term(term),
            log_term=Term(log_term),
            index=Index(index),
            entries=entries,
            commit=Index(commit),
            vote=ReplicaId(vote),
            snapshot=snapshot,
            reject=reject,
            reject_hint=Index(reject_hint),
            context=context,
        )
        messages.append((GroupId(group), message))
    if at != end:
        raise InvalidFrame("a Raft frame carries data that belongs to no message")
    return messages


def _record(group: GroupId, message: Message, payload: list[Buffer]) -> object:
    """Return the record of `message`, and add its data to `payload`."""
    assert message.kind in TRAVELLING, "a replica's words to itself stay there"
    assert not message.responses, "what a storage thread is to deliver stays on its node"
    entries: list[object] = []
    for entry in message.entries:
        data = entry.data
        entries.append((entry.term, entry.index, len(data), entry.kind))
        if data:
            payload.append(data)
    snapshot = message.snapshot
    snapshot_record: object = None
    if snapshot is not None:
        size = len(snapshot.data)
        snapshot_record = (snapshot.index, snapshot.term, size, snapshot.conf_state)
        payload.append(snapshot.data)
    return (
        group,
        message.kind,
        message.to,
        message.sender,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.vote,
        message.reject,
        message.reject_hint,
        message.context,
        entries,
        snapshot_record,
    )


def _frame(records: list[object], payload: list[Buffer]) -> tuple[bytes, list[Buffer]]:
    packed = _pack(records)
    payload[0] = packed
    return _RECORDS_LENGTH.pack(len(packed)), payload


def _size_bounds(message: Message) -> tuple[int, int]:
    """Return what the record of `message` takes at most, and the bytes of its data."""
    record_bytes = _MESSAGE_RECORD_BYTES + len(message.context)
    size = 0
    if message.entries:
        record_bytes += _ENTRY_RECORD_BYTES * len(message.entries)
        for entry in message.entries:
            size += len(entry.data)
    if message.snapshot is not None:
        record_bytes += _SNAPSHOT_RECORD_BYTES + len(_pack(message.snapshot.conf_state))
        size += len(message.snapshot.data)
    return record_bytes, size


def _check_size(record_bytes: int, size: int, frame_bytes_max: int) -> None:
    if record_bytes > RECORDS_BYTES_MAX:
        raise LimitExceeded("records_bytes_max", f"a Raft message of {record_bytes} bytes")
    whole = _PREFIX_AND_HEADER_BYTES + record_bytes + size
    if whole > frame_bytes_max:
        raise LimitExceeded("frame_bytes_max", f"a Raft message of {whole} bytes")


def _unpacked_records(header: bytes, payload: memoryview) -> tuple[list[_MessageRecord], int]:
    """Return the records, and where the data begin."""
    if len(header) != _RECORDS_LENGTH.size:
        raise InvalidFrame("the header of a Raft frame is four bytes")
    length: int = _RECORDS_LENGTH.unpack(header)[0]
    if length > min(len(payload), RECORDS_BYTES_MAX):
        raise InvalidFrame(f"a Raft frame cannot have {length} bytes of records")
    try:
        return _unpack(payload[:length]), length
    except (ValueError, RecursionError) as error:
        raise InvalidFrame(f"the records of a Raft frame cannot be read: {error}") from None
