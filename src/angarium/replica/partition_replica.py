"""A replica of a partition: it also copies large files from its peers, and serves them to one.

Three things travel outside of the Raft log, because they are too large for it or because it has
lost them: segments for a replica that fell behind the log's start, single batches to mend damaged
segments, and committed entries to mend a damaged log.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import (
    AngariumError,
    CorruptData,
    DiskFull,
    InvalidArgument,
    NotFound,
    OffsetOutOfRange,
)
from angarium.log.segments import SegmentImport
from angarium.log.segments.compacted_mark import Stage
from angarium.raft.messages import MessageKind, Snapshot
from angarium.replica.mending import Mending
from angarium.replica.partition import Partition, manifest_in
from angarium.replica.peers import (
    ChunkReply,
    ChunkRequest,
    FramesReply,
    FramesRequest,
)
from angarium.replica.repair import IdentityLost
from angarium.replica.replica import Replica
from angarium.replica.transfer import SegmentCopy

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from angarium.ids import GroupId, Micros, Offset, ReplicaId
    from angarium.log.disk import Disk
    from angarium.log.wal import Wal
    from angarium.raft import RaftNode
    from angarium.raft.messages import Message
    from angarium.replica.acks import Publishing
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.outbox import Outbox
    from angarium.replica.peers import PeerMessage
    from angarium.replica.storage import ReplicaStorage
    from angarium.replica.work import Work

URGENT_BYTES: Final = 1 << 20
"""So much in memory that no segment has yet is written at the next occasion; less can wait for it a
little longer."""


class PartitionReplica(Replica):
    """One partition on one node."""

    def __init__(
        self,
        *,
        partition: Partition,
        folder: str,
        disk: Disk,
        group: GroupId,
        raft: RaftNode,
        storage: ReplicaStorage,
        wal: Wal,
        outbox: Outbox,
        config: ReplicaConfig,
    ) -> None:
        super().__init__(
            group=group,
            raft=raft,
            storage=storage,
            state=partition,
            wal=wal,
            outbox=outbox,
            config=config,
        )
        self.partition = partition
        self._disk = disk
        self._folder = folder
        self._copy: SegmentCopy | None = None
        self._is_opening_copy = False
        self._chunks_left = config.transfer_chunks_per_tick
        self._served: dict[ReplicaId, int] = {}
        """Ticks since each peer last asked for a chunk."""
        self._mending: Mending | None = None
        partition.attach(self)
        partition.on_damage = self._note_damage
        if self.is_mending:
            self._note_damage()

    @property
    def is_in_use(self) -> bool:
        """True while a thread may be writing its files, so that they cannot be closed."""
        copy = self._copy
        return self.is_busy or self._is_opening_copy or (copy is not None and copy.is_writing)

    # --- clients ----------------------------------------------------------------------------

    @property
    def end_offset(self) -> Offset:
        """Where the committed records that are visible here end."""
        return self.partition.log.end_offset

    @property
    def has_room(self) -> bool:
        """Tell whether more entries may come: on disk, and in memory before the segments."""
        return super().has_room and not self.partition.is_congested

    def publish(self, requests: Sequence[Publishing], *, now: Micros) -> None:
        """Store batches and answer as each request asks; see `Partition.publish`."""
        if self._wal.is_full:
            for request in requests:
                request.reply(DiskFull("the leader's disk is full"))
            return
        self.partition.publish(requests, now=now)

    def fetch(self, offset: Offset, *, bytes_max: int) -> list[memoryview]:
        """Return committed batches from the one that holds `offset` on."""
        return self.partition.fetch(offset, bytes_max=bytes_max)

    # --- inputs -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let one tick pass, for the core and for copies under way."""
        super().tick()
        self._watch_copy()
        self.mend()
        if self._served or self.raft.is_leader:
            self._watch_receivers()

    def receive(self, message: Message) -> None:
        """Take a Raft message; a snapshot waits until its segments have been copied."""
        if message.kind is MessageKind.SNAPSHOT and message.snapshot is not None:
            self._consider(message, message.snapshot)
        else:
            self.step(message)

    def receive_from_peer(self, message: PeerMessage) -> None:
        """Take a message outside of Raft."""
        match message:
            case ChunkRequest():
                self._serve_chunk(message)
            case ChunkReply():
                self._take_chunk(message)
            case FramesRequest():
                self._serve_frames(message)
            case FramesReply():
                self._take_frames(message)
            case _:
                super().receive_from_peer(message)

    # --- catching up ------------------------------------------------------------------------

    def _consider(self, offer: Message, snapshot: Snapshot) -> None:
        if snapshot.index <= self.raft.commit or offer.term < self.raft.term:
            # Nothing to copy: the core will tell the sender so.
            self.step(offer)
            return
        if self._copy is not None and self._copy.index >= snapshot.index:
            return
        if not self._is_opening_copy and not self.partition.is_compacting:
            self._outbox.chores.append(self._begin_copy(offer, snapshot))

    def _begin_copy(self, offer: Message, snapshot: Snapshot) -> Generator[Work, None, None]:
        opened: list[SegmentCopy] = []
        if self.partition.is_compacting:
            return  # what is here changes under its hands; the leader offers it again
        self._is_opening_copy = True
        try:
            yield lambda: opened.append(self._opened_copy(offer, snapshot))
        except DiskFull:
            return
        finally:
            self._is_opening_copy = False
        self._copy = opened[0]
        self._go_on_copying(self._copy)

    def _opened_copy(self, offer: Message, snapshot: Snapshot) -> SegmentCopy:
        importing = SegmentImport.begin(
            self._disk,
            f"{self._folder}/segments",
            manifest_in(snapshot.data),
            chunk_bytes=self._config.transfer_chunk_bytes,
        )
        copy = SegmentCopy(
            group=self.group,
            replica=self.id,
            source=offer.sender,
            offer=offer,
            index=snapshot.index,
            importing=importing,
        )
        copy.look()
        return copy

    def _take_chunk(self, reply: ChunkReply) -> None:
        copy = self._copy
        if copy is None or reply.snapshot_index != copy.index:
            return
        if reply.gone:
            # The source has trimmed it away; its next snapshot will not list it.
            self._copy = None
        elif copy.expects(reply):
            self._outbox.chores.append(self._write_chunk(copy, reply))

    def _write_chunk(self, copy: SegmentCopy, reply: ChunkReply) -> Generator[Work, None, None]:
        if not copy.expects(reply):
            return  # the same chunk came twice
        copy.is_writing = True
        try:
            # A damaged segment is asked for again, from its beginning.
            with suppress(CorruptData):
                yield lambda: copy.write(reply)
        except DiskFull:
            return
        finally:
            copy.is_writing = False
        if self._copy is copy:
            self._go_on_copying(copy)

    def _go_on_copying(self, copy: SegmentCopy) -> None:
        if copy.is_writing:
            return
        request = copy.request()
        if request is not None:
            if self._chunks_left > 0:
                self._chunks_left -= 1
                self._outbox.tell(request)
            return
        if self.is_busy or self._wal.is_full:
            return  # the log is being written, or has no room; the next tick comes back to this
        self._copy = None
        if copy.index <= self.raft.commit:
            # The log caught up by itself meanwhile, and is ahead of what was copied.
            copy.importing.discard()
            return
        self.partition.adopt(copy.importing)
        self.step(copy.offer)
        self.process()

    def _watch_copy(self) -> None:
        copy = self._copy
        was_held_back = self._chunks_left == 0
        self._chunks_left = self._config.transfer_chunks_per_tick
        if copy is None or copy.is_writing:
            return
        quiet = copy.tick()
        if quiet >= self._config.transfer_patience_ticks:
            self._copy = None
        elif quiet % 4 == 0 or was_held_back:
            # The request or its answer may have been lost; asking twice does no harm.
            self._go_on_copying(copy)

    # --- serving those who catch up ---------------------------------------------------------

    def _serve_chunk(self, request: ChunkRequest) -> None:
        self._served[request.sender] = 0
        log = self.partition.log
        if request.doubt:
            log.verify_segment(request.segment)
        if any(damage.segment == request.segment for damage in log.damage):
            return  # it is being mended; the peer asks again
        length = min(request.length, self._config.transfer_chunk_bytes)
        data = b""
        # Whole, and yet not what was listed: compaction has put another segment in its place.
        gone = request.doubt and log.compactor.stage != Stage()
        if gone:
            self._storage.outdate()
        try:
            data = log.read_segment(request.segment, request.position, length)
        except NotFound:
            gone = True
            self._storage.outdate()  # the snapshot it was offered lists what is not there any more
        except CorruptData:
            return
        self._outbox.tell(
            ChunkReply(
                group=self.group,
                sender=self.id,
                to=request.sender,
                snapshot_index=request.snapshot_index,
                segment=request.segment,
                position=request.position,
                data=data,
                gone=gone or not data,
            )
        )

    def _watch_receivers(self) -> None:
        """Tell the core about peers that stopped fetching the snapshot it sent them."""
        if not self.raft.is_leader:
            self._served.clear()
            return
        patience = self._config.transfer_patience_ticks
        for peer in list(self._served):
            self._served[peer] += 1
        for peer in self.raft.snapshot_receivers():
            quiet = self._served.setdefault(peer, 0)
            if quiet > 2 * patience:
                del self._served[peer]
                self.raft.report_snapshot(peer, ok=False)

    # --- mending damaged segments -----------------------------------------------------------

    @property
    def is_mending(self) -> bool:
        """True while some of this replica's segments are known to be damaged."""
        return bool(self.partition.log.damage)

    def _note_damage(self) -> None:
        self._outbox.hurt.add(self.group)

    def mend(self) -> None:
        """Let one tick pass; ask a peer for the first thing that is damaged here."""
        damage = self.partition.log.damage
        if not damage:
            self._mending = None
            return
        if self._mending is None or self._mending.damage != damage[0]:
            self._mending = Mending(damage[0])
        if self._mending.is_due():
            self._ask_for_frames(self._mending)

    def _ask_for_frames(self, mending: Mending) -> None:
        peers = [peer for peer in self.raft.conf_state.voters if peer != self.id]
        if peers:
            request = mending.request(
                group=self.group,
                replica=self.id,
                peers=peers,
                bytes_max=self._config.message_bytes_max,
            )
            self._outbox.tell(request)

    def _take_frames(self, reply: FramesReply) -> None:
        mending = self._mending
        if mending is None:
            return
        if reply.gone and reply.offset == mending.damage.from_offset:
            self._note_gone(mending, reply.sender)
            return
        if not mending.receive(reply):
            return
        if not mending.is_complete:
            self._ask_for_frames(mending)
            return
        self._mending = None
        try:
            self.partition.log.repair(mending.damage, mending.frames, stage=mending.stage)
        except DiskFull:
            return
        except (CorruptData, InvalidArgument):
            # A peer whose copy is no better than ours is found out by the checksums; ask the
            # next. One whose records were compacted further cannot help any more.
            self._mending = mending.again()
            if mending.stage.done > self.partition.log.compactor.stage.done:
                self._note_gone(self._mending, reply.sender)

    def _note_gone(self, mending: Mending, peer: ReplicaId) -> None:
        """Give up this replica if nobody has what would make its segments whole again."""
        mending.gone_at.add(peer)
        others = {one for one in self.raft.conf_state.voters if one != self.id}
        if mending.gone_at >= others:
            raise IdentityLost(
                f"segment {mending.damage.segment} is damaged, and the others have trimmed it away"
            )

    def _serve_frames(self, request: FramesRequest) -> None:
        frames: list[memoryview] = []
        gone = False
        try:
            frames = self.partition.log.read(request.offset, request.bytes_max, gaps=True)
        except OffsetOutOfRange as out:
            gone = out.offset < out.start
        except AngariumError:
            return
        self._outbox.tell(
            FramesReply(
                self.group,
                self.id,
                request.sender,
                request.offset,
                tuple(bytes(frame) for frame in frames),
                gone,
                self.partition.log.compactor.stage,
            )
        )

    def close(self) -> None:
        """Let go of everything, the segments' files included."""
        super().close()
        self.partition.log.close()

    # --- housekeeping -----------------------------------------------------------------------

    def needs_care(self) -> bool:
        """Tell whether there is something to write or remove, or a snapshot is due."""
        return self.partition.needs_care() or super().needs_care()

    def is_care_urgent(self) -> bool:
        """Tell whether much is to be written, or a snapshot is due."""
        return self.partition.log.unflushed_bytes >= URGENT_BYTES or super().is_care_urgent()

    def shorten_log(self, *, is_patient: bool) -> Generator[Work, None, None]:
        """Do as any replica does, but not while segments are being mended."""
        if not self.is_mending:
            yield from super().shorten_log(is_patient=is_patient)

    def maintain(self) -> Generator[Work, None, None]:
        """Do what may wait: write behind, and take a snapshot when it is due."""
        # On a full disk everything stays as it was, and is tried again next time.
        with suppress(DiskFull):
            self.is_busy = True
            try:
                segments_went = yield from self.partition.maintain(
                    may_compact=self._copy is None and not self._is_opening_copy
                )
            finally:
                self.is_busy = False
            if segments_went:
                self._storage.outdate()
            is_wanted = self.wants_snapshot() or self.partition.waits_for_snapshot
            if is_wanted and not self.is_mending:
                yield from self.take_snapshot()
