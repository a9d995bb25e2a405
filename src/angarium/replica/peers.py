"""What replicas of one group ask each other outside of Raft: segments, and entries to repair.

None of these changes what is agreed. They copy what is already committed, so losing, repeating or
reordering them costs time and nothing else.
"""

from __future__ import annotations

import msgspec

from angarium.ids import Buffer, GroupId, Index, Offset, ReplicaId
from angarium.raft.messages import Entry


class ChunkRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for bytes of a segment that the snapshot at `snapshot_index` lists."""

    group: GroupId
    sender: ReplicaId
    to: ReplicaId
    snapshot_index: Index
    segment: Offset
    position: int
    length: int


class ChunkReply(msgspec.Struct, frozen=True, tag=True):
    """Brings the bytes, or says that the segment is no longer there."""

    group: GroupId
    sender: ReplicaId
    to: ReplicaId
    snapshot_index: Index
    segment: Offset
    position: int
    data: Buffer
    gone: bool = False


class EntriesRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for committed entries `[low, high]` that a damaged log has lost."""

    group: GroupId
    sender: ReplicaId
    to: ReplicaId
    low: Index
    high: Index


class EntriesReply(msgspec.Struct, frozen=True, tag=True):
    """Brings committed entries from `low` on; `compacted` says that they are gone for good."""

    group: GroupId
    sender: ReplicaId
    to: ReplicaId
    low: Index
    entries: tuple[Entry, ...]
    compacted: bool = False


class FramesRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for committed batches and declared gaps from `offset` on, to mend damaged segments."""

    group: GroupId
    sender: ReplicaId
    to: ReplicaId
    offset: Offset
    bytes_max: int


class FramesReply(msgspec.Struct, frozen=True, tag=True):
    """Brings them, as they are in the sender's segments; none if it cannot help."""

    group: GroupId
    sender: ReplicaId
    to: ReplicaId
    offset: Offset
    frames: tuple[Buffer, ...]


PeerMessage = (
    ChunkRequest | ChunkReply | EntriesRequest | EntriesReply | FramesRequest | FramesReply
)
