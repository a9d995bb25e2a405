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
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from angarium.errors import TooLarge
from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.raft.messages import (
    FORWARDED,
    OF_PEERS,
    ConfState,
    Entry,
    EntryKind,
    Message,
    MessageKind,
    Snapshot,
    by_number,
)
from angarium.wire.errors import InvalidFrame
from angarium.wire.wire_limits import FRAME_BYTES_LEAST

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

TRAVELLING: Final = OF_PEERS | FORWARDED
"""What replicas say to each other; everything else a replica says only to itself."""

_TRAVELS: Final = by_number(TRAVELLING)

_RECORDS_LENGTH: Final = Struct("<I")
_NOTHING: Final[list[Any]] = []

# Upper bounds of what a record takes: nine bytes for each number, and the arrays around them.
_MESSAGE_RECORD_BYTES: Final = 112
_ENTRY_RECORD_BYTES: Final = 30
_SNAPSHOT_RECORD_BYTES: Final = 32
_PREFIX_AND_HEADER_BYTES: Final = 32
_FREELY_BYTES: Final = FRAME_BYTES_LEAST - _PREFIX_AND_HEADER_BYTES
"""A message no larger than this fits every frame."""

_Natural = msgspec.Meta(ge=0, le=2**63 - 1)
_Term = Annotated[Term, _Natural]
_Index = Annotated[Index, _Natural]
_Replica = Annotated[ReplicaId, _Natural]
_Size = Annotated[int, _Natural]
_EntryRecord = tuple[_Term, _Index, _Size, EntryKind]
_SnapshotRecord = tuple[_Index, _Term, _Size, ConfState]
_MessageRecord = tuple[
    Annotated[RaftGroupId, _Natural],
    MessageKind,
    _Replica,  # to
    _Replica,  # sender
    _Term,
    _Term,  # log term
    _Index,
    _Index,  # commit
    _Replica,  # vote
    bool,  # reject
    _Index,  # reject hint
    bytes,  # context
    list[_EntryRecord],
    _SnapshotRecord | None,
]
_Records = Annotated[list[_MessageRecord], msgspec.Meta(max_length=MESSAGES_PER_FRAME_MAX)]

_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder[list[_MessageRecord]](_Records).decode

Addressed = tuple[RaftGroupId, Message]
"""A message and the group it is about."""


class RaftFrame(NamedTuple):
    """What a frame with Raft messages is made of."""

    header: bytes
    payload: list[Buffer]
    message_count: int
    """How many messages it carries."""


def packed_messages(messages: Iterable[Addressed], *, frame_bytes_max: int) -> Iterator[RaftFrame]:
    """Yield as few frames as hold `messages`, in their order.

    A message that no frame may hold is left out, so that the others do not suffer; when they have
    been yielded, `TooLarge` tells of it.
    """
    too_large: TooLarge | None = None
    records: list[object] = []
    payload: list[Buffer] = [b""]
    frame_bytes = 0
    for group, message in messages:
        assert _TRAVELS[message.kind], "a replica's words to itself stay there"
        assert not message.responses, "what a storage thread is to deliver stays on its node"
        record_bytes = _MESSAGE_RECORD_BYTES + len(message.context)
        data_bytes = 0
        data: list[Buffer] = _NOTHING
        entry_records: list[object] = _NOTHING
        snapshot_record: object = None
        if message.entries or message.snapshot is not None:
            data = []
            entry_records, data_bytes = _entry_records(message.entries, data)
            record_bytes += _ENTRY_RECORD_BYTES * len(entry_records)
            if message.snapshot is not None:
                snapshot_record, more = _snapshot_record(message.snapshot, data)
                record_bytes += more
                data_bytes += len(message.snapshot.data)
        size = record_bytes + data_bytes
        if size > _FREELY_BYTES:
            excess = _excess(record_bytes, data_bytes, frame_bytes_max)
            if excess is not None:
                too_large = excess
                continue
        if records and (
            frame_bytes + size > FRAME_BYTES_AIM or len(records) == MESSAGES_PER_FRAME_MAX
        ):
            yield _frame(records, payload)
            records, payload, frame_bytes = [], [b""], 0
        records.append(
            (
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
                entry_records,
                snapshot_record,
            )
        )
        payload += data
        frame_bytes += size
    if records:
        yield _frame(records, payload)
    if too_large is not None:
        raise too_large


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
        if not _TRAVELS[kind]:
            raise InvalidFrame(f"Raft messages of kind {kind.name} do not travel")
        entries: tuple[Entry, ...] = ()
        if entry_records:
            found = []
            for entry_term, entry_index, size, entry_kind in entry_records:
                data = payload[at : at + size] if size else b""
                found.append(Entry(entry_term, entry_index, data, entry_kind))
                at += size
            entries = tuple(found)
        snapshot = None
        if snapshot_record is not None:
            snapshot_index, snapshot_term, size, members = snapshot_record
            data = payload[at : at + size] if size else b""
            snapshot = Snapshot(snapshot_index, snapshot_term, members, data)
            at += size
        # A slice past the end is only shorter, never an error: one check here is enough.
        if at > end:
            raise InvalidFrame("a Raft message counts more data than its frame has")
        message = Message(
            kind=kind,
            to=to,
            sender=sender,
            term=term,
            log_term=log_term,
            index=index,
            entries=entries,
            commit=commit,
            vote=vote,
            snapshot=snapshot,
            reject=reject,
            reject_hint=reject_hint,
            context=context,
        )
        messages.append((group, message))
    if at != end:
        raise InvalidFrame("a Raft frame carries data that belongs to no message")
    return messages


def _entry_records(entries: tuple[Entry, ...], payload: list[Buffer]) -> tuple[list[object], int]:
    """Return the records of `entries` and the bytes of their data, which go to `payload`."""
    records: list[object] = []
    data_bytes = 0
    for entry in entries:
        data = entry.data
        size = len(data)
        records.append((entry.term, entry.index, size, entry.kind))
        if size:
            payload.append(data)
            data_bytes += size
    return records, data_bytes


def _snapshot_record(snapshot: Snapshot, payload: list[Buffer]) -> tuple[object, int]:
    """Return the record of `snapshot` and what it takes at most; its data goes to `payload`."""
    size = len(snapshot.data)
    if size:
        payload.append(snapshot.data)
    record = (snapshot.index, snapshot.term, size, snapshot.conf_state)
    return record, _SNAPSHOT_RECORD_BYTES + len(_pack(snapshot.conf_state))


def _frame(records: list[object], payload: list[Buffer]) -> RaftFrame:
    packed = _pack(records)
    payload[0] = packed
    return RaftFrame(_RECORDS_LENGTH.pack(len(packed)), payload, len(records))


def _excess(record_bytes: int, data_bytes: int, frame_bytes_max: int) -> TooLarge | None:
    if record_bytes > RECORDS_BYTES_MAX:
        return TooLarge("records_bytes_max", f"a Raft message of {record_bytes} bytes")
    whole = _PREFIX_AND_HEADER_BYTES + record_bytes + data_bytes
    if whole > frame_bytes_max:
        return TooLarge("frame_bytes_max", f"a Raft message of {whole} bytes")
    return None


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
