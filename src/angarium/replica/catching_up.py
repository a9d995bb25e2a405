"""Catching up by a snapshot: first the files it lists, then the snapshot itself.

A leader offers a snapshot to a replica that has fallen behind the start of its log. The offer waits
here while its open stages (`StageCopy`) and its segments (`SegmentCopy`) are copied from the
leader, a few chunks per tick; only then does the core hear of it. A copy that gets no answer for
long is given up, and a later offer begins another, which finds on disk what is there already.

If the leader has forgotten, before a copy is done, what comes behind it, it offers a later snapshot
(`Outrun`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from angarium.errors import CorruptData, DiskFull
from angarium.log.segments import SegmentImport
from angarium.replica.pacing import Outrun
from angarium.replica.partition_snapshot import check_readable, manifest_in, stages_beside
from angarium.replica.peers import PartRequest
from angarium.replica.scrutiny import Objection
from angarium.replica.stage_copy import StageCopy
from angarium.replica.transfer import SegmentCopy

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.ids import Index
    from angarium.log.disk import Disk
    from angarium.raft.messages import Message, Snapshot
    from angarium.replica.partition_files import PartitionFiles
    from angarium.replica.parts import Parts
    from angarium.replica.peers import ChunkReply, PartReply
    from angarium.replica.work import Work

PACED_BYTES_MIN: Final = 4 << 10
"""The least that a copy with a pace asks for at a time, once so much has come together: even at the
slowest pace it asks often enough not to be given up for lost."""

STAGED_BYTES_MAX: Final = 16 << 20
"""Bytes of copied stages in memory. Above it no more is asked for until they have been written."""


class Receiver(Protocol):
    """The replica that catches up, as far as this is concerned."""

    @property
    def is_busy(self) -> bool:
        """True while files are written that nothing else may touch meanwhile."""

    @property
    def is_applying(self) -> bool:
        """True while what is committed here is not all applied."""

    def step(self, message: Message) -> None:
        """Let the core take a message."""

    def process(self) -> None:
        """Carry out what the core has decided."""


ADOPTION_ROOM_BYTES: Final = 128 << 10
"""Room on disk, beside its manifest, that a copy needs for marks and footers to take the place of
what was here. Without it the copy waits."""


class CatchingUp:
    """At most one copy under way."""

    def __init__(
        self, receiver: Receiver, parts: Parts, files: PartitionFiles, *, disk: Disk, segments: str
    ) -> None:
        """Copy into the folder `segments`."""
        self._receiver = receiver
        self._parts = parts
        self._files = files
        self._disk = disk
        self._segments = segments
        self._copy: SegmentCopy | None = None
        self._stages = StageCopy(files.stages, {})
        self._is_opening = False
        self._chunks_left = parts.config.transfer_chunks_per_tick
        self.bytes_per_tick: int | None = None
        """What it may ask for in a tick, besides the usual bounds; None: no more than these."""
        self._bytes_left = 0
        self._asked: tuple[int, ...] = ()
        """What was asked for last, and counts as passed: asked for again, it is the same."""
        self._is_held = False
        """Whether it waits for its share of what the node's copies may take (`Pace`)."""
        self._outrun = Outrun()

    @property
    def here_bytes(self) -> int:
        """How many bytes of a copy under way are here."""
        return 0 if self._copy is None else self._copy.importing.here_bytes

    @property
    def is_under_way(self) -> bool:
        """True while segments are being copied."""
        return self._copy is not None or self._is_opening

    @property
    def is_writing(self) -> bool:
        """True while a thread may be writing the files of a copy."""
        copy = self._copy
        return self._is_opening or (copy is not None and copy.is_writing)

    def consider(self, offer: Message, snapshot: Snapshot) -> None:
        """Take a leader's offer: copy what it lists first, unless there is nothing to copy."""
        raft = self._parts.raft
        if snapshot.index <= raft.commit or offer.term < raft.term:
            # Nothing to copy: the core will tell the sender so.
            self._receiver.step(offer)
            return
        # An offer repeats until it is answered, and a copy that is under way serves the newest one
        # as well as its own.
        if self._copy is not None and self._copy.index >= snapshot.index:
            return
        if not self.is_writing and not self._files.is_compacting:
            # From here on, not from when a thread comes to it: the next offer would have the same
            # files opened by two threads, and a replica that is given up its folder deleted. An
            # older copy has the same files: what it lacks comes too late.
            self._is_opening = True
            self._copy = None
            self._parts.outbox.chores.append(self._begin(offer, snapshot))

    def _begin(self, offer: Message, snapshot: Snapshot) -> Generator[Work, None, None]:
        opened: list[SegmentCopy] = []
        try:
            if self._files.is_compacting:
                return  # what is here changes under its hands; the leader offers it again
            yield lambda: opened.append(self._opened(offer, snapshot))
        except DiskFull:
            return
        except CorruptData as unreadable:
            what = f"a snapshot of group {self._parts.group}: {unreadable}"
            self._parts.outbox.refusals.note(Objection.CONTENT, what)
            return
        finally:
            self._is_opening = False
        self._copy = opened[0]
        self._outrun.copies(snapshot.index)
        self._asked, self._is_held = (), False
        self._stages = StageCopy(self._files.stages, stages_beside(snapshot.data))
        self._go_on(self._copy)

    def _opened(self, offer: Message, snapshot: Snapshot) -> SegmentCopy:
        check_readable(snapshot.data)
        importing = SegmentImport.begin(
            self._disk,
            self._segments,
            manifest_in(snapshot.data),
            chunk_bytes=self._parts.config.transfer_chunk_bytes,
        )
        copy = SegmentCopy(
            group=self._parts.group,
            replica=self._parts.raft.id,
            source=offer.sender,
            offer=offer,
            index=snapshot.index,
            importing=importing,
        )
        copy.look()
        return copy

    def take(self, reply: ChunkReply) -> None:
        """Take a chunk, if it is the one that was asked for."""
        copy = self._expecting(reply)
        if copy is None:
            return
        if reply.gone:
            # The source has trimmed it away; its next snapshot will not list it.
            self._copy = None
        elif not reply.data:
            copy.progressed()  # the source holds it back
        elif copy.expects(reply):
            copy.is_writing = True  # from here on, as with `_is_opening`
            self._parts.outbox.chores.append(self._write(copy, reply))

    def take_part(self, reply: PartReply) -> None:
        """Take a piece of a stage, if it is the one that was asked for."""
        copy = self._expecting(reply)
        if copy is None:
            return
        if reply.gone:
            self._copy = None  # decided since: the next snapshot has it in its segments, or not
        elif self._stages.take(reply):
            copy.progressed()
            self._parts.outbox.touched.add(self._parts.group)  # to write it
            self._go_on(copy)

    def _expecting(self, reply: ChunkReply | PartReply) -> SegmentCopy | None:
        """Return the copy that an answer is for, unless it came twice.

        While a thread has its files nothing was asked for. That it is gone is told again then;
        heard now, it would let another copy, or a deletion, at files that are being written.
        """
        copy = self._copy
        if copy is None or copy.is_writing:
            return None
        is_its = reply.snapshot_index == copy.index and reply.sender == copy.source
        return copy if is_its else None

    def _ask_for_stages(self, copy: SegmentCopy) -> bool:
        """Ask for what is missing of the stages; False if nothing is."""
        wanted = self._stages.missing()
        if wanted is None:
            return False
        is_written = self._files.stages.waiting_bytes <= STAGED_BYTES_MAX
        bytes_max = self._granted(self._parts.config.transfer_chunk_bytes, wanted)
        if bytes_max and is_written:
            self._take(bytes_max)
            slot, part, position = wanted
            self._parts.outbox.tell(
                PartRequest(
                    self._parts.group,
                    self._parts.raft.id,
                    copy.source,
                    copy.index,
                    slot,
                    part,
                    position,
                    bytes_max,
                )
            )
        return True

    def _write(self, copy: SegmentCopy, reply: ChunkReply) -> Generator[Work, None, None]:
        try:
            # A damaged segment is asked for again, from its beginning.
            with suppress(CorruptData):
                yield lambda: copy.write(reply)
        except DiskFull:
            return
        finally:
            copy.is_writing = False
        if self._copy is copy:
            self._go_on(copy)

    def _go_on(self, copy: SegmentCopy) -> None:
        # Stages first: they go when they are decided, which is sooner than segments do.
        if copy.is_writing or self._ask_for_stages(copy):
            return
        request = copy.request()
        if request is not None:
            bytes_max = self._granted(request.length, (request.segment, request.position))
            request = copy.request(bytes_max)
            if bytes_max and request is not None:
                self._take(request.length)
                self._parts.outbox.tell(request)
            return
        # Entries that are being applied belong to the old segments; they come to an end first.
        if self._receiver.is_busy or self._receiver.is_applying or self._parts.wal.is_full:
            return  # the log is being written, or has no room; the next tick comes back to this
        if copy.index <= self._parts.raft.commit:
            # The log caught up by itself meanwhile, and is ahead of what was copied.
            self._copy = None
            copy.importing.discard()
            return
        # The old log is closed first, so the switch must not end for want of room.
        if self._disk.free_bytes() < len(copy.importing.manifest.encode()) + ADOPTION_ROOM_BYTES:
            return
        try:
            # Only the rest of the last part: the others have been written as they came.
            self._files.stages.sync()
        except DiskFull:
            return
        self._copy = None
        # Segments in place before the core hears of the snapshot. The other way round, a crash in
        # between leaves a state whose segments are missing. Planted as
        # state-installed-without-its-segments.
        self._files.adopt(copy.importing)
        self._receiver.step(copy.offer)
        self._receiver.process()

    def _granted(self, length: int, wanted: tuple[int, ...]) -> int:
        """Return how many of the `length` bytes that are `wanted` next may be asked for; 0: wait.

        The same again is asked for because the request, or its answer, may have been lost.
        """
        if self._chunks_left <= 0:
            return 0
        if self.bytes_per_tick is not None:
            # The rest of a segment may be less than this, and is asked for with it.
            if self._bytes_left < PACED_BYTES_MIN:
                return 0
            length = min(self._bytes_left, length)
        if wanted == self._asked:
            return length
        length = self._parts.pace.granted(length, group=self._parts.group)
        self._is_held = not length
        self._asked = wanted if length else ()
        return length

    def _take(self, length: int) -> None:
        self._chunks_left -= 1
        self._bytes_left -= length

    def _earn(self) -> bool:
        """Let a tick bring what the pace allows; tell whether there was nothing left before."""
        if self.bytes_per_tick is None:
            self._bytes_left = 0
            return False
        was_out = self._bytes_left < PACED_BYTES_MIN
        # What was not used does not add up: who waited for its disk does not make up for it.
        most = self.bytes_per_tick + PACED_BYTES_MIN
        self._bytes_left = min(self._bytes_left + self.bytes_per_tick, most)
        return was_out and self._bytes_left >= PACED_BYTES_MIN

    def go_on(self) -> None:
        """Ask for more: it is this copy's turn."""
        self._is_held = False
        if self._copy is not None:
            self._go_on(self._copy)

    def tick(self, *, told_commit: Index) -> None:
        """Let one tick pass: ask again, ask for more, or give up.

        `told_commit` is how far the group is, as a leader told with its last entries.
        """
        copy = self._copy
        if copy is not None:
            self._parts.pace.hear_outrun(self._outrun.times)
        else:
            self._outrun.has_log_to(self._parts.raft.commit, of=told_commit)
        was_held_back = self._earn() or self._chunks_left == 0
        self._chunks_left = self._parts.config.transfer_chunks_per_tick
        # While others have their turn nobody is silent.
        if copy is None or copy.is_writing or self._is_held:
            return
        quiet = copy.tick()
        if quiet >= self._parts.config.transfer_patience_ticks:
            self._copy = None
        elif quiet % 4 == 0 or was_held_back:
            # The request or its answer may have been lost; asking twice does no harm.
            self._go_on(copy)
