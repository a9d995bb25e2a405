"""Mending damaged segments with good copies of their batches from a peer.

Committed batches are the same bytes on every replica. What a replica finds damaged it never serves
(readers get an error); it asks its peers, one after the other, and puts their copies in place.

Where topics are compacted peers may have gone further, each in its own time. So one peer is asked
for all of a stretch before the next one is, and only what it sent itself says that it cannot help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import CorruptData, DiskFull, InvalidArgument
from angarium.ids import is_witness
from angarium.log.segments.compacted_mark import Stage
from angarium.log.segments.frames import frame_at
from angarium.replica.damage import Fate
from angarium.replica.peers import FramesRequest
from angarium.replica.repair import IdentityLost

if TYPE_CHECKING:
    from angarium.ids import Buffer, Offset, RaftGroupId, ReplicaId
    from angarium.log.segments import SegmentDamage
    from angarium.replica.partition_files import PartitionFiles
    from angarium.replica.parts import Parts
    from angarium.replica.peers import FramesReply

ASK_AGAIN_TICKS = 4
"""Ticks after which a request without an answer is made again."""

ASK_AGAIN_MAX = 3
"""Requests without an answer after which a peer that has sent something is left for the next one;
a peer that has sent nothing is left after one."""


class Mending:
    """One damaged stretch, being replaced. At most a segment's worth of frames is held."""

    __slots__ = (
        "_next",
        "_quiet",
        "_turn",
        "_unanswered",
        "damage",
        "frames",
        "givers",
        "gone_at",
        "stage",
    )

    def __init__(self, damage: SegmentDamage) -> None:
        self.damage = damage
        self.gone_at: set[ReplicaId] = set()
        """Peers that no longer have what is damaged here."""
        self._turn = 0
        self._quiet = 0
        self._unanswered = 0
        self._begin()

    def _begin(self) -> None:
        self.frames: list[Buffer] = []
        """What has come so far, without a hole from the beginning of the damage."""
        self.givers: set[ReplicaId] = set()
        """Peers the frames come from; more than one only where one fell silent."""
        self.stage = Stage()
        """How far the segments are compacted from which the frames come."""
        self._next: Offset = self.damage.from_offset

    @property
    def is_complete(self) -> bool:
        """True once the frames reach the end of the damage."""
        return self._next >= self.damage.to_offset

    def is_due(self) -> bool:
        """Let a tick pass; tell whether it is time to ask, again or for the first time."""
        self._quiet += 1
        if self._quiet % ASK_AGAIN_TICKS != 1:
            return False
        if self._unanswered >= (ASK_AGAIN_MAX if self.frames else 1):
            self._turn += 1
            self._unanswered = 0
        return True

    def request(
        self, *, group: RaftGroupId, replica: ReplicaId, peers: list[ReplicaId], bytes_max: int
    ) -> FramesRequest:
        """Return the next question, put to the peer whose turn it is."""
        peer = peers[self._turn % len(peers)]
        self._unanswered += 1
        return FramesRequest(group, replica, peer, self._next, bytes_max)

    def receive(self, reply: FramesReply) -> bool:
        """Take frames that continue what is here; False if they do not, and nothing is added."""
        if reply.offset != self._next or not reply.frames:
            return False
        # A peer has compacted in between, and its frames of before and after overlap or leave
        # holes.
        if self.frames and reply.stage != self.stage:
            # Frames of two stages do not belong together: begin anew, with whoever answers now.
            self._begin()
            self._heard()
            return False
        taken = 0
        for data in reply.frames:
            frame = frame_at(data, 0)
            # What a peer sends is checked frame by frame: a damaged copy must not be written over
            # a damaged one.
            if frame is None or self.is_complete:
                break
            # A gap may begin earlier in the peer's segments than the damage does in ours.
            if frame.base_offset != self._next and not (
                frame.is_gap and frame.base_offset < self._next < frame.next_offset
            ):
                break
            self.frames.append(data)
            self._next = frame.next_offset
            taken += 1
        if not taken:
            return False
        self.stage = reply.stage
        self.givers.add(reply.sender)
        self._heard()
        return True

    def _heard(self) -> None:
        self._quiet = 0
        self._unanswered = 0

    def next_peer(self) -> None:
        """Begin anew with the next peer, after a pause: this one could not help."""
        self._begin()
        self._turn += 1
        self._quiet = 1
        self._unanswered = 0


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
        # A witness has no segments; to wait for its word that it has none would be for ever.
        voters = raft.conf_state.voters
        return [peer for peer in voters if peer != raft.id and not is_witness(peer)]

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
            mending.next_peer()
            self._note_gone(mending, reply.sender)
            return
        if not mending.receive(reply):
            return
        log = self._files.log
        if mending.is_complete or not log.is_comparable(mending.damage, mending.stage):
            self._install(mending)
        else:
            self._ask(mending)

    def _install(self, mending: Mending) -> None:
        log, damage = self._files.log, mending.damage
        try:
            # Only frames that fit the checksums known here are written; the bytes on every replica
            # are the same.
            if log.repair(damage, mending.frames, stage=mending.stage):
                what = f"records {damage.from_offset} to {damage.to_offset - 1}"
                self._parts.outbox.damage.note(Fate.MENDED, self._parts.group, what)
            self._mending = None
        except DiskFull:
            self._mending = None
        except InvalidArgument:
            mending.next_peer()  # frames that are not whole: a copy no better than ours
        except CorruptData:
            if damage in log.damage:
                self._refuse(mending)
            else:
                self._mending = None  # more is damaged than was known

    def _refuse(self, mending: Mending) -> None:
        """Ask the next peer: the frames are whole, and not those that were here.

        Who has compacted its records further has nothing to mend these segments with any more, nor
        has who is as far and has cut the gaps otherwise. Who is behind will be as far some day.
        """
        here, there, givers = self._files.log.compactor.stage, mending.stage, mending.givers
        is_as_far = there == here and not here.is_between
        mending.next_peer()
        if there.done > here.done or (is_as_far and mending.damage.from_offset < here.done.until):
            self._note_gone(mending, *givers)

    def _note_gone(self, mending: Mending, *peers: ReplicaId) -> None:
        """Give up this replica if nobody has what would make its segments whole again."""
        mending.gone_at.update(peers)
        # Asking on would never end, and a replica that cannot serve its records must not count as
        # one of those that keep them.
        if mending.gone_at.issuperset(self._others()):
            raise IdentityLost(
                f"segment {mending.damage.segment} is damaged, and the others have trimmed or "
                "compacted theirs"
            )
