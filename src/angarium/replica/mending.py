"""Mending damaged segments with good copies of their batches from a peer.

Committed batches are the same bytes on every replica. What a replica finds damaged it never serves
(readers get an error); it asks its peers, in turn, and puts their copies in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import CorruptData, DiskFull, InvalidArgument
from angarium.log.segments.compacted_mark import Stage
from angarium.log.segments.frames import frame_at
from angarium.replica.peers import FramesRequest
from angarium.replica.repair import IdentityLost

if TYPE_CHECKING:
    from angarium.ids import Buffer, GroupId, Offset, ReplicaId
    from angarium.log.segments import SegmentDamage
    from angarium.replica.partition_files import PartitionFiles
    from angarium.replica.parts import Parts
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


class Mender:
    """Mends what is damaged in one replica's segments, one stretch after the other."""

    def __init__(self, parts: Parts, files: PartitionFiles) -> None:
        self._parts = parts
        self._files = files
        self._mending: Mending | None = None

    def tick(self) -> None:
        """Let one tick pass; ask a peer for the first thing that is damaged here."""
        damage = self._files.log.damage
        if not damage:
            self._mending = None
            return
        if self._mending is None or self._mending.damage != damage[0]:
            self._mending = Mending(damage[0])
        if self._mending.is_due():
            self._ask(self._mending)

    def _others(self) -> list[ReplicaId]:
        raft = self._parts.raft
        return [peer for peer in raft.conf_state.voters if peer != raft.id]

    def _ask(self, mending: Mending) -> None:
        peers = self._others()
        if peers:
            request = mending.request(
                group=self._parts.group,
                replica=self._parts.raft.id,
                peers=peers,
                bytes_max=self._parts.config.message_bytes_max,
            )
            self._parts.outbox.tell(request)

    def take(self, reply: FramesReply) -> None:
        """Take batches of a peer, and put them in place once they are all here."""
        mending = self._mending
        if mending is None:
            return
        if reply.gone and reply.offset == mending.damage.from_offset:
            self._note_gone(mending, reply.sender)
            return
        if not mending.receive(reply):
            return
        if not mending.is_complete:
            self._ask(mending)
            return
        self._mending = None
        log = self._files.log
        try:
            log.repair(mending.damage, mending.frames, stage=mending.stage)
        except DiskFull:
            return
        except (CorruptData, InvalidArgument):
            # A peer whose copy is no better than ours is found out by the checksums; ask the
            # next. One whose records were compacted further cannot help any more.
            self._mending = mending.again()
            if mending.stage.done > log.compactor.stage.done:
                self._note_gone(self._mending, reply.sender)

    def _note_gone(self, mending: Mending, peer: ReplicaId) -> None:
        """Give up this replica if nobody has what would make its segments whole again."""
        mending.gone_at.add(peer)
        if mending.gone_at.issuperset(self._others()):
            raise IdentityLost(
                f"segment {mending.damage.segment} is damaged, and the others have trimmed or "
                "compacted theirs"
            )
