"""Copying a partition's segments from a peer, chunk by chunk.

A replica that has fallen behind the log's start gets a snapshot: a small state and a manifest of
segments. The segments come first. Only when every byte listed is here and verified does the
snapshot reach the Raft core, so a replica never claims to have what it could not serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import CorruptData
from angarium.replica.peers import ChunkReply, ChunkRequest

if TYPE_CHECKING:
    from angarium.ids import Index, RaftGroupId, ReplicaId
    from angarium.log.segments import MissingChunk, SegmentImport
    from angarium.raft.messages import Message


class SegmentCopy:
    """One copy under way: what is still missing, whom to ask, and how long nothing has come."""

    __slots__ = (
        "_doubt",
        "_group",
        "_id",
        "_importing",
        "_index",
        "_quiet",
        "_source",
        "_wanted",
        "is_writing",
        "offer",
    )

    def __init__(
        self,
        *,
        group: RaftGroupId,
        replica: ReplicaId,
        source: ReplicaId,
        index: Index,
        importing: SegmentImport,
        offer: Message,
    ) -> None:
        self.offer = offer
        """The leader's snapshot message that this copy is for."""
        self._group = group
        self._id = replica
        self._source = source
        self._index = index
        self._importing = importing
        self._quiet = 0
        self._doubt = False
        self._wanted: MissingChunk | None = None
        self.is_writing = False
        """True while a chunk is on its way to the disk."""

    @property
    def index(self) -> Index:
        """The index as of which the source listed its segments."""
        return self._index

    @property
    def source(self) -> ReplicaId:
        """Whom it copies from."""
        return self._source

    @property
    def importing(self) -> SegmentImport:
        """The files being filled."""
        return self._importing

    def look(self) -> None:
        """Find out what is missing, verifying what is here. Blocks; may run in a thread."""
        self._wanted = self._importing.missing()

    def request(self, bytes_max: int | None = None) -> ChunkRequest | None:
        """Return what to ask for next, or None when everything is here.

        With `bytes_max`, no more than that.
        """
        wanted = self._wanted
        if wanted is None:
            return None
        length = wanted.length if bytes_max is None else min(wanted.length, bytes_max)
        return ChunkRequest(
            self._group,
            self._id,
            self._source,
            self._index,
            wanted.segment,
            wanted.position,
            length,
            self._doubt,
        )

    def expects(self, reply: ChunkReply) -> bool:
        """Tell whether this is the chunk that was asked for."""
        wanted = self._wanted
        return (
            wanted is not None
            and not self.is_writing
            and reply.snapshot_index == self._index
            and (reply.segment, reply.position) == (wanted.segment, wanted.position)
            and reply.sender == self._source
            and 0 < len(reply.data) <= wanted.length
        )

    def write(self, reply: ChunkReply) -> None:
        """Put a chunk where it belongs, and see what is missing then. Blocks, as `look` does.

        `CorruptData` says that a segment is complete and not what the source had listed. It is
        asked for again from its beginning, and the source is told to look at its own copy.
        """
        self._quiet = 0
        try:
            self._importing.write(reply.segment, reply.position, reply.data)
            self._doubt = False
        except CorruptData:
            # The source verifies its own copy before it sends the segment again: sending the same
            # damaged bytes would never end.
            self._doubt = True
            raise
        finally:
            self.look()

    def progressed(self) -> None:
        """Hear that something else came that belongs to the same snapshot."""
        self._quiet = 0

    def tick(self) -> int:
        """Let a tick pass; return how many have passed since the last progress."""
        self._quiet += 1
        return self._quiet
