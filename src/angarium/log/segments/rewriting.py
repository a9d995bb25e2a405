"""Writing segments anew with fewer records, beside the old ones, and taking their place.

Several small neighbours may become one. A batch that loses all its records becomes a declared gap,
and neighbouring gaps become one. Nothing of the log changes before the *decision* is durable; after
it, an opening carries out what a crash has left undone. So the log has the old segments or the new
one, never both and never neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.batch.checksum import crc32c, extend
from angarium.errors import CorruptData
from angarium.ids import Offset
from angarium.log.disk import replace_file
from angarium.log.segments.delay_file import write_delays
from angarium.log.segments.footer import write_footer
from angarium.log.segments.frames import frame_at, gap_frames, latest_times
from angarium.log.segments.index import Point
from angarium.log.segments.names import (
    COMPACT,
    COMPACT_DECIDED,
    COMPACT_DELAYS,
    COMPACT_FOOTER,
    DELAYS,
    FOOTER,
    SEGMENT,
    file_name,
    offsets_named,
)
from angarium.log.segments.segment import Segment

if TYPE_CHECKING:
    from angarium.ids import Buffer
    from angarium.log.disk import Disk, File
    from angarium.log.segments.config import SegmentConfig
    from angarium.log.segments.frames import Frame

_WRITE_BYTES: Final = 1 << 20
"""Bytes gathered before they are written."""

_NAMES: Final = ((COMPACT, SEGMENT), (COMPACT_FOOTER, FOOTER), (COMPACT_DELAYS, DELAYS))
_CRC_BYTES: Final = 4


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """One segment takes the place of some."""

    base_offset: Offset
    """Under this name it is ready, and this is the name it will have."""
    removed: tuple[Offset, ...]
    """The others whose place it takes."""


_decode: Final = msgspec.msgpack.Decoder(Decision).decode


class Rewrite(NamedTuple):
    """A segment that is ready to take the place of others."""

    old: list[Segment]
    new: Segment

    @property
    def decision(self) -> Decision:
        """What is written down about it."""
        return Decision(self.new.base_offset, tuple(one.base_offset for one in self.old[1:]))


class Draft:
    """A segment being written. Everything here blocks, and runs in a thread."""

    def __init__(self, disk: Disk, folder: str, config: SegmentConfig, base: Offset) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._name = file_name(folder, base, COMPACT)
        disk.remove(self._name)
        self._file: File = disk.create(self._name)
        self._gap: tuple[Offset, Offset] | None = None
        self._pieces: list[Buffer] = []
        self._pending = 0
        self.segment = Segment(base)

    def add(self, frame: Frame, data: Buffer) -> None:
        """Put a frame behind all others."""
        if frame.is_gap:
            self.leave_out(frame)
            return
        self._close_gap()
        content = bytes(data)
        self._add(frame, content)
        expires_at, deliver_at = latest_times(content, 0)
        self.segment.note_times(expires_at, deliver_at)
        if deliver_at:
            self.segment.note_delays(content)

    def leave_out(self, frame: Frame) -> None:
        """Declare the offsets of a frame empty."""
        start = frame.base_offset if self._gap is None else self._gap[0]
        self._gap = (start, frame.next_offset)

    def finish(self, old: list[Segment]) -> Segment:
        """Make everything durable under the names of a draft; return the segment it will be."""
        self._close_gap()
        self._write()
        segment = self.segment
        # A segment whose batches are gone keeps its times.
        segment.first_time = old[0].first_time
        segment.last_time = old[-1].last_time
        segment.allocated = segment.bytes
        segment.written = Point(segment.bytes, segment.crc)
        # The draft is durable before it is decided for. Afterwards the old files may go at any
        # moment.
        self._file.datasync()
        self._file.close()
        if segment.delays is not None:
            delays, segment.delays = segment.delays, None
            write_delays(self._disk, self._folder, segment, delays, suffix=COMPACT_DELAYS)
        write_footer(self._disk, self._folder, segment, suffix=COMPACT_FOOTER)
        segment.is_rolled = segment.is_sealed = True
        return segment

    def discard(self) -> None:
        """Give up; nothing was changed."""
        self._file.close()
        remove_drafts(self._disk, self._folder)

    def _close_gap(self) -> None:
        if self._gap is not None:
            for data in gap_frames(*self._gap):
                frame = frame_at(data, 0)
                assert frame is not None
                self._add(frame, data)
            self._gap = None

    def _add(self, frame: Frame, data: bytes) -> None:
        segment = self.segment
        segment.add(frame, crc=extend(segment.crc, data), index_bytes=self._config.index_bytes)
        self._pieces.append(data)
        self._pending += len(data)
        if self._pending >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._pieces:
            self._file.pwrite(self._pieces, self.segment.bytes - self._pending)
            self._pieces, self._pending = [], 0


def decide(disk: Disk, folder: str, rewrite: Rewrite) -> None:
    """Make it durable that a rewritten segment takes the place of others."""
    body = msgspec.msgpack.encode(rewrite.decision)
    # The names of the drafts must be durable before the decision that speaks of them.
    disk.sync_directory(folder)
    replace_file(
        disk, f"{folder}/{COMPACT_DECIDED}", crc32c(body).to_bytes(_CRC_BYTES, "little") + body
    )


def replace_segments(disk: Disk, folder: str, decision: Decision) -> None:
    """Give a decided segment its name. Nothing waits for the disk here; may be repeated."""
    base = decision.base_offset
    for draft, name in _NAMES:
        if disk.exists(file_name(folder, base, draft)):
            disk.rename(file_name(folder, base, draft), file_name(folder, base, name))


def clear_away(disk: Disk, folder: str, decision: Decision) -> None:
    """Remove the segments whose place was taken, then the decision. Blocks; may be repeated."""
    disk.sync_directory(folder)
    for base in decision.removed:
        for suffix in (DELAYS, FOOTER, SEGMENT):
            disk.remove(file_name(folder, base, suffix))
    disk.sync_directory(folder)
    # Last: as long as it is there, an opening carries the decision out again, which does no harm.
    disk.remove(f"{folder}/{COMPACT_DECIDED}")
    disk.sync_directory(folder)


def complete_compaction(disk: Disk, folder: str) -> None:
    """Carry out what was decided, or remove what was not; before anything is opened."""
    try:
        file = disk.open(f"{folder}/{COMPACT_DECIDED}")
    except FileNotFoundError:
        remove_drafts(disk, folder)
        return
    try:
        data = file.pread(file.size(), 0)
    finally:
        file.close()
    body = data[_CRC_BYTES:]
    if crc32c(body).to_bytes(_CRC_BYTES, "little") != data[:_CRC_BYTES]:
        # Not ignored: some of the old segments may be gone already, and only the decision says
        # which new one stands for them.
        raise CorruptData(f"{folder}: what a compaction has decided cannot be read")
    decision = _decode(body)
    replace_segments(disk, folder, decision)
    clear_away(disk, folder, decision)
    remove_drafts(disk, folder)


def remove_drafts(disk: Disk, folder: str) -> None:
    """Remove what an unfinished rewrite has left."""
    for suffix, _ in _NAMES:
        for base in offsets_named(disk, folder, suffix):
            disk.remove(file_name(folder, base, suffix))
