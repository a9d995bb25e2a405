"""A replica of a partition: it also copies large files from its peers, and serves them to others.

Three things travel outside of the Raft log, because they are too large for it or because it has
lost them: segments for a replica that fell behind the log's start (`catching_up`), single batches
to mend damaged segments (`mending`), and committed entries to mend a damaged log (`repair`). Here
they meet the Raft replica, so that none of them gets in another's way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData, DiskFull
from angarium.raft.messages import MessageKind
from angarium.replica.catching_up import CatchingUp
from angarium.replica.mending import Mender
from angarium.replica.partition_files import folders_in
from angarium.replica.peers import (
    ChunkReply,
    ChunkRequest,
    FramesReply,
    FramesRequest,
    PartReply,
    PartRequest,
)
from angarium.replica.replica import Replica
from angarium.replica.serving import SegmentServer

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from angarium.ids import Micros, Offset
    from angarium.log.disk import Disk
    from angarium.raft.messages import Message
    from angarium.replica.acks import Publishing
    from angarium.replica.partition import Partition
    from angarium.replica.parts import Parts
    from angarium.replica.peers import PeerMessage
    from angarium.replica.work import Work

RELUCTANT_TIMEOUTS: Final = 3
"""How many election timeouts without a leader pass before a replica campaigns that should not lead:
any other that can has done so by then."""

URGENT_BYTES: Final = 1 << 20
"""So much in memory that no segment has yet is written at the next occasion; less can wait for it a
little longer."""


class PartitionReplica(Replica):
    """A replica whose state is a partition: it also copies, mends and serves segments."""

    def __init__(self, parts: Parts, partition: Partition, *, disk: Disk, folder: str) -> None:
        """Join `partition`, whose files lie in `folder`, to its Raft group."""
        super().__init__(parts, partition)
        self.partition = partition
        files = partition.files
        segments, _ = folders_in(folder)
        self._catching_up = CatchingUp(self, parts, files, disk=disk, segments=segments)
        self._mender = Mender(parts, files)
        self._server = SegmentServer(parts, files)
        self._spoiled: CorruptData | None = None
        """What was found wrong while a large commit was brought in."""
        partition.attach(self, replayed_to=self.raft.last_index, stand_back=self._stand_back)

    @property
    def is_in_use(self) -> bool:
        """True while a thread may be writing its files, so that they cannot be closed."""
        return super().is_in_use or self._catching_up.is_writing

    @property
    def copied_bytes(self) -> int:
        """How many bytes of segments have come of a copy that is under way."""
        return self._catching_up.here_bytes

    def pace_copy(self, bytes_per_tick: int | None) -> None:
        """Let a copy to here take no more than this in a tick; None: as fast as usual."""
        self._catching_up.bytes_per_tick = bytes_per_tick

    def go_on_copying(self, request: ChunkRequest | None) -> None:
        """Give what a peer asked for, or ask for more: it is this replica's turn."""
        if request is None:
            self._catching_up.go_on()
        else:
            self._server.give_chunk(request)

    @property
    def is_mending(self) -> bool:
        """True while some of this replica's segments are known to be damaged."""
        return bool(self.partition.log.damage)

    def unready(self) -> str:
        """Say in words why this replica does not count as a full replica yet; empty if it does.

        One that has everything and only listens can be read, but the group still counts on whoever
        it is to replace: no other disk may go before it votes.
        """
        if words := self.shortfall():
            return words
        # The disk of the replica that it replaces must not go yet: until everybody has heard of
        # the change, that one is needed for a majority. Planted as next-disk-given-up-too-early.
        if not self._fullness.is_seated(is_resting=self.is_resting):
            return "has everything, and has not taken its place among the voters yet"
        return ""

    def _stand_back(self, stands_back: bool) -> None:
        """Campaign only where no other replica does: this one may lack committed records."""
        self.raft.be_patient(RELUCTANT_TIMEOUTS if stands_back else 1)

    # --- clients ----------------------------------------------------------------------------

    @property
    def end_offset(self) -> Offset:
        """Where the committed records that are visible here end."""
        return self.partition.log.end_offset

    @property
    def has_room(self) -> bool:
        """Tell whether more entries may come: on disk, and in memory before the segments."""
        # Backpressure for a follower: an append is dropped as if it had been lost, and the
        # leader's window fills.
        return super().has_room and not self.partition.is_congested and not self.is_applying

    def publish(
        self, requests: Sequence[Publishing], *, now: Micros, may_wait: bool = False
    ) -> None:
        """Store batches and answer as each request asks; see `Partition.publish`."""
        # Refused before anything is numbered. Small commands still come through on the reserve
        # (`propose`).
        if self._wal.is_full:
            for request in requests:
                request.reply(DiskFull("the leader's disk is full"))
            return
        self.partition.publish(requests, now=now, may_wait=may_wait)

    def fetch(self, offset: Offset, *, bytes_max: int) -> list[memoryview]:
        """Return committed batches from the one that holds `offset` on."""
        return self.partition.files.log.read(offset, bytes_max)

    # --- inputs -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Let one tick pass, for the core and for what travels beside it."""
        super().tick()
        if self.halted:
            return
        self._catching_up.tick(told_commit=self.told_commit)
        self._mender.tick()
        self._server.tick(settled=self.settled_index)

    def mend(self) -> None:
        """Let one tick pass for mending alone: segments are mended even while their group rests."""
        if not self.halted:
            self._mender.tick()

    def receive(self, message: Message) -> None:
        """Take a Raft message; a snapshot waits until its segments have been copied."""
        if message.kind is MessageKind.SNAPSHOT and message.snapshot is not None:
            self._fullness.hear(message, self.raft)
            # Kept from the core until the files it lists are here: an installed state without its
            # segments would answer readers with nothing. Planted as
            # state-installed-without-its-segments.
            self._catching_up.consider(message, message.snapshot)
        else:
            super().receive(message)

    def receive_from_peer(self, message: PeerMessage) -> None:
        """Take a message outside of Raft."""
        match message:
            case ChunkRequest():
                self._server.give_chunk(message)
            case ChunkReply():
                self._catching_up.take(message)
            case PartRequest():
                self._server.give_part(message)
            case PartReply():
                self._catching_up.take_part(message)
            case FramesRequest():
                self._server.give_frames(message)
            case FramesReply():
                self._mender.take(message)
            case _:
                super().receive_from_peer(message)

    def process(self) -> None:
        """Carry out what the core has decided, and go on with a large commit."""
        if self.is_applying and not self.is_closed and not self.halted:
            self._go_on_applying()
        super().process()

    def _go_on_applying(self) -> None:
        self._outbox.touched.add(self.group)
        # Raised here and not in the chore, where nobody could stop the replica for it.
        if self._spoiled is not None:
            raise self._spoiled
        if self.is_busy:
            return  # the same files are being written
        self.partition.conclude()
        if not self.partition.is_concluded:
            self.is_busy = True
            self._outbox.chores.append(self._publish_stages())

    def _publish_stages(self) -> Generator[Work, None, None]:
        """Bring in what a large commit publishes; the next tick goes on from there."""
        try:
            with suppress(DiskFull):
                yield from self.partition.publish_stages()
        except CorruptData as damaged:
            self._spoiled = damaged
        finally:
            self.is_busy = False

    def close(self) -> None:
        """Let go of everything, the segments' files included."""
        super().close()
        self.partition.log.close()

    # --- housekeeping -----------------------------------------------------------------------

    def wants_snapshot(self) -> bool:
        """Tell whether one is due, if only to be rid of large stages that are decided."""
        spent = self.partition.files.spent_bytes
        is_behind = self.applied > self.snapshot_index
        return super().wants_snapshot() or (is_behind and spent >= self._config.snapshot_bytes)

    def needs_care(self) -> bool:
        """Tell whether there is something to write or remove, or a snapshot is due."""
        return self.partition.files.needs_care() or super().needs_care()

    def is_care_urgent(self) -> bool:
        """Tell whether much is to be written, or a snapshot is due."""
        files = self.partition.files
        is_much = files.log.unflushed_bytes >= URGENT_BYTES or files.are_stages_due
        return is_much or super().is_care_urgent()

    def shorten_log(self, *, is_patient: bool) -> Generator[Work, None, None]:
        """Do as any replica does, but not while segments are being mended."""
        # A snapshot lists segments as they are. One that is taken while some are damaged would
        # offer the damage to peers, and the log, which still has the entries, would forget them.
        if not self.is_mending:
            yield from super().shorten_log(is_patient=is_patient)

    def maintain(self) -> Generator[Work, None, None]:
        """Do what may wait: write behind, and take a snapshot when it is due."""
        files = self.partition.files
        if self.is_busy:
            return  # a large commit is being brought in
        # On a full disk everything stays as it was, and is tried again next time.
        with suppress(DiskFull):
            self.is_busy = True
            try:
                segments_went = yield from files.maintain(
                    may_compact=not self._catching_up.is_under_way
                )
            finally:
                self.is_busy = False
            if segments_went:
                # The newest snapshot lists segments that are gone. A peer must be offered another
                # one (seed 1543).
                self._storage.outdate()
            is_wanted = self.wants_snapshot() or files.waits_for_snapshot
            if is_wanted and not self.is_mending:
                yield from self.take_snapshot()
