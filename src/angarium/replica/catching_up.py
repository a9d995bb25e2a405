"""Catching up by a snapshot: first the segments it lists, then the snapshot itself.

A leader offers a snapshot to a replica that has fallen behind the start of its log. The offer waits
here while its segments are copied from the leader (`SegmentCopy`), a few chunks per tick; only then
does the core hear of it. A copy that gets no answer for long is given up, and a later offer begins
another, which finds on disk what is there already.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from angarium.errors import CorruptData, DiskFull
from angarium.log.segments import SegmentImport
from angarium.replica.partition_snapshot import manifest_in
from angarium.replica.transfer import SegmentCopy

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.log.disk import Disk
    from angarium.raft.messages import Message, Snapshot
    from angarium.replica.partition_files import PartitionFiles
    from angarium.replica.parts import Parts
    from angarium.replica.peers import ChunkReply
    from angarium.replica.work import Work


class Receiver(Protocol):
    """The replica that catches up, as far as this is concerned."""

    @property
    def is_busy(self) -> bool:
        """True while files are written that nothing else may touch meanwhile."""

    def step(self, message: Message) -> None:
        """Let the core take a message."""

    def process(self) -> None:
        """Carry out what the core has decided."""


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
        self._is_opening = False
        self._chunks_left = parts.config.transfer_chunks_per_tick

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
        if self._copy is not None and self._copy.index >= snapshot.index:
            return
        if not self._is_opening and not self._files.is_compacting:
            self._parts.outbox.chores.append(self._begin(offer, snapshot))

    def _begin(self, offer: Message, snapshot: Snapshot) -> Generator[Work, None, None]:
        opened: list[SegmentCopy] = []
        if self._files.is_compacting:
            return  # what is here changes under its hands; the leader offers it again
        self._is_opening = True
        try:
            yield lambda: opened.append(self._opened(offer, snapshot))
        except DiskFull:
            return
        finally:
            self._is_opening = False
        self._copy = opened[0]
        self._go_on(self._copy)

    def _opened(self, offer: Message, snapshot: Snapshot) -> SegmentCopy:
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
        copy = self._copy
        if copy is None or reply.snapshot_index != copy.index:
            return
        if reply.gone:
            # The source has trimmed it away; its next snapshot will not list it.
            self._copy = None
        elif copy.expects(reply):
            self._parts.outbox.chores.append(self._write(copy, reply))

    def _write(self, copy: SegmentCopy, reply: ChunkReply) -> Generator[Work, None, None]:
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
            self._go_on(copy)

    def _go_on(self, copy: SegmentCopy) -> None:
        if copy.is_writing:
            return
        request = copy.request()
        if request is not None:
            if self._chunks_left > 0:
                self._chunks_left -= 1
                self._parts.outbox.tell(request)
            return
        if self._receiver.is_busy or self._parts.wal.is_full:
            return  # the log is being written, or has no room; the next tick comes back to this
        self._copy = None
        if copy.index <= self._parts.raft.commit:
            # The log caught up by itself meanwhile, and is ahead of what was copied.
            copy.importing.discard()
            return
        self._files.adopt(copy.importing)
        self._receiver.step(copy.offer)
        self._receiver.process()

    def tick(self) -> None:
        """Let one tick pass: ask again, ask for more, or give up."""
        copy = self._copy
        was_held_back = self._chunks_left == 0
        self._chunks_left = self._parts.config.transfer_chunks_per_tick
        if copy is None or copy.is_writing:
            return
        quiet = copy.tick()
        if quiet >= self._parts.config.transfer_patience_ticks:
            self._copy = None
        elif quiet % 4 == 0 or was_held_back:
            # The request or its answer may have been lost; asking twice does no harm.
            self._go_on(copy)
