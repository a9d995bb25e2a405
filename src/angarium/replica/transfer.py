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
    from angarium.ids import GroupId, Index, ReplicaId
    from angarium.log.segments import SegmentImport
    from angarium.raft.messages import Message


class SegmentCopy:
    """One copy under way: what is still missing, whom to ask, and how long nothing has come."""

    __slots__ = ("_doubt", "_group", "_id", "_importing", "_index", "_quiet", "_source", "offer")

    def __init__(
        self,
        *,
        group: GroupId,
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

    @property
    def index(self) -> Index:
        """The index as of which the source listed its segments."""
        return self._index

    @property
    def importing(self) -> SegmentImport:
        """The files being filled."""
        return self._importing

    def request(self) -> ChunkRequest | None:
        """Return what to ask for next, or None when everything is here."""
        wanted = self._importing.missing()
        if wanted is None:
            return None
        return ChunkRequest(
            self._group,
            self._id,
            self._source,
            self._index,
            wanted.segment,
            wanted.position,
            wanted.length,
            self._doubt,
        )

    def receive(self, reply: ChunkReply) -> bool:
        """Take a chunk; False if it belongs to another copy or place and changes nothing.

        `CorruptData` says that a segment is complete and not what the source had listed. It is
        asked for again from its beginning, and the source is told to look at its own copy.
        """
        wanted = self._importing.missing()
        expected = (
            wanted is not None
            and reply.snapshot_index == self._index
            and (reply.segment, reply.position) == (wanted.segment, wanted.position)
        )
        if not expected:
            return False
        self._quiet = 0
        try:
            self._importing.write(reply.segment, reply.position, reply.data)
        except CorruptData:
            self._doubt = True
            raise
        self._doubt = False
        return True

    def tick(self) -> int:
        """Let a tick pass; return how many have passed since the last progress."""
        self._quiet += 1
        return self._quiet
