"""What a replica gives its peers of its own files: chunks and stages to copy, batches and entries
to mend with.

A copy takes many requests, so a leader watches for peers that have ceased to ask: the core is told,
and offers them a new snapshot later. It counts how often each of them was outrun (`Outrun`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch.checksum import crc32c
from angarium.errors import AngariumError, CorruptData, NotFound, OffsetOutOfRange
from angarium.ids import Index
from angarium.log.segments.compacted_mark import Stage
from angarium.raft import Compacted, Unavailable
from angarium.replica.pacing import Outrun
from angarium.replica.peers import ChunkReply, EntriesReply, FramesReply, PartReply

if TYPE_CHECKING:
    from angarium.ids import ReplicaId
    from angarium.raft.messages import Entry
    from angarium.replica.partition_files import PartitionFiles
    from angarium.replica.parts import Parts
    from angarium.replica.peers import ChunkRequest, EntriesRequest, FramesRequest, PartRequest


def give_entries(parts: Parts, request: EntriesRequest, *, says_if_gone: bool = True) -> None:
    """Give committed entries to a peer whose log is damaged.

    Unless it `says_if_gone`, others may have what is not here any more.
    """
    # Committed ones only. They are the same on every replica (Raft §5.4.3), so a peer may fill
    # holes with them; uncommitted ones might be another history than the peer's.
    if not 0 < request.low <= request.high <= parts.raft.commit:
        return
    entries: tuple[Entry, ...] = ()
    compacted = False
    try:
        high = Index(request.high + 1)
        entries = tuple(parts.storage.entries(request.low, high, parts.config.message_bytes_max))
    except Compacted:
        if not says_if_gone:
            return
        compacted = True
    except (Unavailable, CorruptData):
        return
    parts.outbox.tell(EntriesReply.of(request, entries, compacted=compacted))


class SegmentServer:
    """Answers peers out of one replica's segments. What is damaged here is never given away."""

    def __init__(self, parts: Parts, files: PartitionFiles) -> None:
        self._parts = parts
        self._files = files
        self._served: dict[ReplicaId, int] = {}
        """Ticks since each peer last asked for a chunk."""
        self._outrun: dict[ReplicaId, Outrun] = {}
        """Those that copy, or have copied and do not follow the log yet. With each tick only
        members are left of them, and with a leader only."""

    def give_chunk(self, request: ChunkRequest) -> None:
        """Give a peer that catches up a piece of a segment."""
        self._hear(request)
        log = self._files.log
        if request.doubt:
            # The peer got bytes that do not fit the manifest. Only reading the segment from end to
            # end tells whether it is this disk that is wrong. Planted as
            # damaged-segment-sent-for-ever.
            log.verify_segment(request.segment)
        if any(damage.segment == request.segment for damage in log.damage):
            return  # it is being mended; the peer asks again
        length = self._parts.pace.granted(
            min(request.length, self._parts.config.transfer_chunk_bytes),
            group=self._parts.group,
            peer=request.sender,
            request=request,
        )
        if not length and request.length:
            # It is heard, and waits for its turn. Otherwise the peer would take it for lost, and
            # the copy, after a while, for dead.
            self._reply(request, b"")
            return
        data = b""
        try:
            data = log.read_segment(request.segment, request.position, length)
        except NotFound:
            pass  # trimmed away, or compacted away
        except CorruptData:
            return
        # Whole, and yet not what was listed, or shorter: compaction has put another in its place.
        gone = not data or (request.doubt and log.compactor.stage != Stage())
        if gone:
            # The snapshot it was offered lists what is not there any more. After a restart this is
            # the only way to learn that: what had outdated it was not written down (seed 25057).
            self._parts.storage.outdate()
        self._reply(request, data, gone=gone)

    def _hear(self, request: ChunkRequest | PartRequest) -> None:
        self._served[request.sender] = 0
        self._outrun.setdefault(request.sender, Outrun()).copies(request.snapshot_index)

    def _reply(self, request: ChunkRequest, data: bytes, *, gone: bool = False) -> None:
        self._parts.outbox.tell(
            ChunkReply(
                group=self._parts.group,
                sender=self._parts.raft.id,
                to=request.sender,
                snapshot_index=request.snapshot_index,
                segment=request.segment,
                position=request.position,
                data=data,
                gone=gone,
            )
        )

    def give_part(self, request: PartRequest) -> None:
        """Give a peer that catches up a piece of a stage."""
        self._hear(request)
        stages = self._files.stages
        whole = b""
        # One that the newest snapshot lists is here until the next snapshot does without it.
        gone = request.part >= stages.parts(request.slot)
        if not gone:
            # None of them is dropped while a peer copies, or the copy would have to begin again
            # with every commit.
            self._files.are_stages_lent = True
            try:
                whole = stages.part(request.slot, request.part)
            except CorruptData:
                if self._files.is_open(request.slot):
                    return  # nobody can have it before it is decided
                # A snapshot of today does without it.
                gone = True
                self._parts.storage.outdate()
        length = min(request.length, self._parts.config.transfer_chunk_bytes)
        self._parts.pace.spend(min(length, len(whole)))
        self._parts.outbox.tell(
            PartReply(
                group=self._parts.group,
                sender=self._parts.raft.id,
                to=request.sender,
                snapshot_index=request.snapshot_index,
                slot=request.slot,
                part=request.part,
                position=request.position,
                data=whole[request.position : request.position + length],
                size=len(whole),
                crc=crc32c(whole),
                gone=gone,
            )
        )

    def give_frames(self, request: FramesRequest) -> None:
        """Give a peer good copies of batches that are damaged there."""
        log = self._files.log
        frames: list[memoryview] = []
        gone = False
        try:
            most = min(request.bytes_max, self._parts.config.message_bytes_max)
            frames = log.read(request.offset, most, gaps=True)
        except OffsetOutOfRange as out:
            # Trimmed here. Behind the end means only that this replica has not got so far.
            gone = out.offset < out.start
        except AngariumError:
            return
        self._parts.outbox.tell(
            FramesReply(
                self._parts.group,
                self._parts.raft.id,
                request.sender,
                request.offset,
                tuple(bytes(frame) for frame in frames),
                gone,
                log.compactor.stage,
            )
        )

    def tick(self, *, settled: Index) -> None:
        """Let one tick pass; tell the core about peers that stopped fetching its snapshot.

        Whoever has the log up to `settled`, and more than it copied, follows it.
        """
        raft = self._parts.raft
        patience = self._parts.config.transfer_patience_ticks
        if all(quiet > patience for quiet in self._served.values()):
            self._files.are_stages_lent = False
        if not raft.is_leader:
            self._served.clear()
            self._outrun.clear()
            return
        for peer, outrun in list(self._outrun.items()):
            match = raft.match(peer)
            if match is None or outrun.has_log_to(match, of=settled):
                del self._outrun[peer]
            elif self._served.get(peer, patience) < patience:
                self._parts.pace.hear_outrun(outrun.times)
        for peer in self._served:
            self._served[peer] += 1
        for peer in raft.snapshot_receivers():
            quiet = self._served.setdefault(peer, 0)
            if quiet > 2 * self._parts.config.transfer_patience_ticks:
                del self._served[peer]
                # Otherwise the core would wait in the snapshot state for a peer that has given up
                # (docs/reference/raft.md).
                raft.report_snapshot(peer, ok=False)
