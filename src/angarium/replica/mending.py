"""Collecting good copies of damaged batches from a peer.

Committed batches are the same bytes on every replica. What a replica finds damaged it never serves
(readers get an error); it asks its peers, in turn, and puts their copies in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.log.segments.compacted_mark import Stage
from angarium.log.segments.frames import frame_at
from angarium.replica.peers import FramesRequest

if TYPE_CHECKING:
    from angarium.ids import Buffer, GroupId, Offset, ReplicaId
    from angarium.log.segments import SegmentDamage
    from angarium.replica.peers import FramesReply

ASK_AGAIN_TICKS = 4
"""Ticks after which a request without an answer goes to the next peer."""


class Mending:
    """One damaged stretch, being replaced. At most a segment's worth of frames is held."""

    __slots__ = ("_next", "_quiet", "_turn", "damage", "frames", "gone_at", "stage")

    def __init__(self, damage: SegmentDamage) -> None:
        self.damage = damage
        self.frames: list[Buffer] = []
        """What has come so far, without a hole from the beginning of the damage."""
        self.gone_at: set[ReplicaId] = set()
        """Peers that no longer have what is damaged here."""
        self.stage = Stage()
        """How far the segments are compacted from which the frames come."""
        self._next: Offset = damage.from_offset
        self._turn = 0
        self._quiet = 0

    @property
    def is_complete(self) -> bool:
        """True once the frames reach the end of the damage."""
        return self._next >= self.damage.to_offset

    def is_due(self) -> bool:
        """Let a tick pass; tell whether it is time to ask, again or for the first time."""
        self._quiet += 1
        return self._quiet % ASK_AGAIN_TICKS == 1

    def request(
        self, *, group: GroupId, replica: ReplicaId, peers: list[ReplicaId], bytes_max: int
    ) -> FramesRequest:
        """Return the next question, put to each peer in turn."""
        peer = peers[self._turn % len(peers)]
        self._turn += 1
        return FramesRequest(group, replica, peer, self._next, bytes_max)

    def receive(self, reply: FramesReply) -> bool:
        """Take frames that continue what is here; False if they do not, and nothing changed."""
        if reply.offset != self._next or not reply.frames:
            return False
        if self.frames and reply.stage != self.stage:
            # Frames of two stages do not belong together.
            self.frames, self._next = [], self.damage.from_offset
            return False
        self.stage = reply.stage
        for data in reply.frames:
            frame = frame_at(data, 0)
            if frame is None or self.is_complete:
                break
            # A gap may begin earlier in the peer's segments than the damage does in ours.
            if frame.base_offset != self._next and not (
                frame.is_gap and frame.base_offset < self._next < frame.next_offset
            ):
                break
            self.frames.append(data)
            self._next = frame.next_offset
        self._quiet = 0
        return True

    def again(self) -> Mending:
        """Return a new attempt at the same damage, to begin with the next peer."""
        other = Mending(self.damage)
        other.gone_at, other._turn = self.gone_at, self._turn
        return other
