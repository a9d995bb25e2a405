"""What replicas of one group ask each other outside of Raft: segments, and entries to repair.

None of these changes what is agreed. They copy what is already committed, so losing, repeating or
reordering them costs time and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Self

import msgspec

from angarium.errors import InvalidArgument
from angarium.ids import CATALOG_GROUP
from angarium.ids import Index as _Index
from angarium.ids import Offset as _Offset
from angarium.ids import RaftGroupId as _GroupId
from angarium.ids import ReplicaId as _ReplicaId
from angarium.ids import Term as _Term
from angarium.log.segments.compacted_mark import Stage
from angarium.raft.messages import Entry, EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import Buffer


_NATURAL: Final = msgspec.Meta(ge=0, le=1 << 62)
"""Whatever counts something. What is below or above was never counted."""

RaftGroupId = Annotated[_GroupId, _NATURAL]
Index = Annotated[_Index, _NATURAL]
Offset = Annotated[_Offset, _NATURAL]
Term = Annotated[_Term, _NATURAL]
Size = Annotated[int, _NATURAL]
ReplicaId = Annotated[_ReplicaId, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Told(msgspec.Struct, frozen=True, tag=True):
    """What one replica tells another of the same group."""

    group: RaftGroupId
    sender: ReplicaId
    to: ReplicaId


class ChunkRequest(_Told, frozen=True, tag=True):
    """Asks for bytes of a segment that the snapshot at `snapshot_index` lists."""

    snapshot_index: Index
    segment: Offset
    position: Size
    length: Size
    doubt: bool = False
    """The last copy of this segment was not what the manifest says: look for damage in it."""


class ChunkReply(_Told, frozen=True, tag=True):
    """Brings the bytes, or says that the segment is no longer there.

    With neither: the request was heard and waits for its turn.
    """

    snapshot_index: Index
    segment: Offset
    position: Size
    data: bytes
    gone: bool = False


class PartRequest(_Told, frozen=True, tag=True):
    """Asks for bytes of a part of a stage that was open as of the snapshot at `snapshot_index`."""

    snapshot_index: Index
    slot: Size
    part: Size
    position: Size
    length: Size


class PartReply(_Told, frozen=True, tag=True):
    """Brings the bytes, or says that the stage is no longer there."""

    snapshot_index: Index
    slot: Size
    part: Size
    position: Size
    data: bytes
    size: Size = 0
    """How long the whole part is."""
    crc: Size = 0
    """The checksum of the whole part."""
    gone: bool = False


class EntriesRequest(_Told, frozen=True, tag=True):
    """Asks for committed entries `[low, high]` that a damaged log has lost."""

    low: Index
    high: Index


class EntriesReply(_Told, frozen=True, tag=True):
    """Brings committed entries from `low` on; `compacted` says that they are gone for good."""

    low: Index
    packed: tuple[tuple[Term, Index, EntryKind, bytes], ...]
    compacted: bool = False

    @classmethod
    def of(cls, request: EntriesRequest, entries: Sequence[Entry], *, compacted: bool) -> Self:
        """Return the answer to `request`."""
        packed = tuple((one.term, one.index, one.kind, bytes(one.data)) for one in entries)
        return cls(request.group, request.to, request.sender, request.low, packed, compacted)

    @property
    def entries(self) -> Iterator[Entry]:
        """The entries, in order."""
        return (Entry(term, index, data, kind) for term, index, kind, data in self.packed)


class Rest(_Told, frozen=True, tag=True):
    """The leader says: you have everything up to `index`, nothing happens, let us rest."""

    term: Term
    index: Index


class Vouch(msgspec.Struct, frozen=True, tag=True):
    """The sender is alive: groups that rest under it may go on resting."""

    sender: ReplicaId
    to: ReplicaId
    group: RaftGroupId = CATALOG_GROUP


class FramesRequest(_Told, frozen=True, tag=True):
    """Asks for committed batches and declared gaps from `offset` on, to mend damaged segments."""

    offset: Offset
    bytes_max: Size


class FramesReply(_Told, frozen=True, tag=True):
    """Brings them, as they are in the sender's segments; none if it cannot help."""

    offset: Offset
    frames: tuple[bytes, ...]
    gone: bool = False
    """True if the sender has deleted what was asked for: it lay below a trim."""
    stage: Stage = Stage()
    """How far the sender's segments are compacted."""


PeerMessage = (
    ChunkRequest
    | ChunkReply
    | PartRequest
    | PartReply
    | EntriesRequest
    | EntriesReply
    | FramesRequest
    | FramesReply
    | Rest
    | Vouch
)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder[PeerMessage](PeerMessage).decode


def encode_peer_message(message: PeerMessage) -> bytes:
    """Return a message as bytes."""
    return _encode(message)


def decode_peer_message(data: Buffer) -> PeerMessage:
    """Return the message in `data`; raises `InvalidArgument`."""
    try:
        message: PeerMessage = _decode(data)
    except msgspec.MsgspecError as error:
        raise InvalidArgument(f"no message between replicas: {error}") from error
    return message
