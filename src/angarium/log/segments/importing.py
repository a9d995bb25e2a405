"""Copying a partition's segments from a peer, chunk by chunk, and switching to them at once.

Chunks go to files of their own beside the log, which serves on unchanged. When every segment of
the manifest is here and verified, `finish` writes down the decision and then carries it out; an
opening after a crash carries on with a decision it finds. So the log is the old one or the new
one, never a mixture. Before the decision an import can be resumed after a crash, or discarded.

Whatever takes long is done while chunks come, in steps of a chunk: each is synced and verified as
it is written, and a segment gets its footer when it is complete. So `finish`, during which nobody
can read the log, only gives files their names; and the node's own log never waits for a disk that
is busy with a whole segment.

A segment that is here already, with the same name and checksum, is not copied again.

An owner that installs a snapshot saves it between the last chunk and `finish`. If a crash comes in
between, it finds at restart a snapshot whose manifest equals that of an import (`resume`), and
finishes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.errors import CorruptData, InvalidArgument
from angarium.log.disk import read_file, replace_file
from angarium.log.segments.compacted_mark import read_compacted_mark, write_compacted_mark
from angarium.log.segments.footer import read_footer, write_footer
from angarium.log.segments.manifest import Manifest, SegmentInfo
from angarium.log.segments.names import (
    DELAYS,
    FOOTER,
    IMPORT,
    IMPORT_DECIDED,
    IMPORT_FOOTER,
    IMPORT_MANIFEST,
    SEGMENT,
    file_name,
    offsets_named,
)
from angarium.log.segments.scan import Scan, scan
from angarium.log.segments.start_mark import write_start_mark

if TYPE_CHECKING:
    from angarium.ids import Buffer, Offset
    from angarium.log.disk import Disk, File
    from angarium.log.segments.segment import Segment

CHUNK_BYTES: Final = 1 << 20
"""How much is asked for at a time."""

_INDEX_BYTES: Final = 64 << 10


class MissingChunk(NamedTuple):
    """What to ask a peer for next."""

    segment: Offset
    position: int
    length: int


class SegmentImport:
    """An import under way. Made by `begin` or `resume`; one per partition at a time."""

    def __init__(self, disk: Disk, folder: str, manifest: Manifest, *, chunk_bytes: int) -> None:
        self.manifest: Final = manifest
        self._disk = disk
        self._folder = folder
        self._chunk_bytes = chunk_bytes
        self._waiting = list(reversed(manifest.segments))
        """Segments not yet known to be here, the next one last."""
        self._position: int | None = None
        """How far the next one's file is good; None while that has not been looked at."""
        self._file: File | None = None
        self._scan: Scan | None = None
        """What of that file is verified."""

    @classmethod
    def begin(
        cls, disk: Disk, folder: str, manifest: Manifest, *, chunk_bytes: int = CHUNK_BYTES
    ) -> SegmentImport:
        """Start importing `manifest`, or go on if it was being imported already.

        Chunks of an earlier manifest are kept where they may belong to this one, too.
        """
        disk.make_folder(folder)
        complete_import(disk, folder)
        listed = {info.base_offset for info in manifest.segments}
        for suffix in (IMPORT, IMPORT_FOOTER):
            for base in offsets_named(disk, folder, suffix):
                if base not in listed:
                    disk.remove(file_name(folder, base, suffix))
        # So that an import that was interrupted is known as such, and goes on instead of beginning
        # again.
        replace_file(disk, f"{folder}/{IMPORT_MANIFEST}", manifest.encode())
        return cls(disk, folder, manifest, chunk_bytes=chunk_bytes)

    @classmethod
    def resume(
        cls, disk: Disk, folder: str, *, chunk_bytes: int = CHUNK_BYTES
    ) -> SegmentImport | None:
        """Return the import that was under way when the process ended, if there was one."""
        data = read_file(disk, f"{folder}/{IMPORT_MANIFEST}")
        if data is None:
            return None
        try:
            manifest = Manifest.decode(data)
        except CorruptData:
            return None
        return cls(disk, folder, manifest, chunk_bytes=chunk_bytes)

    @property
    def here_bytes(self) -> int:
        """How many bytes of what is listed are here, as far as that has been looked at."""
        missing = sum(info.bytes for info in self._waiting) - (self._position or 0)
        return sum(info.bytes for info in self.manifest.segments) - missing

    def missing(self) -> MissingChunk | None:
        """Return the chunk to ask for next; None when everything is here.

        What is here already is verified on the way, so a call may take as long as reading a
        segment does.
        """
        while self._waiting:
            info = self._waiting[-1]
            if self._position is None:
                self._position = self._start(info)
            if self._position < info.bytes:
                length = min(self._chunk_bytes, info.bytes - self._position)
                return MissingChunk(info.base_offset, self._position, length)
            self._next()
        return None

    def write(self, segment: Offset, position: int, data: Buffer) -> None:
        """Take the chunk that `missing` asked for, or the first part of it.

        `CorruptData` says that a segment is complete and not what the manifest lists; it will be
        asked for again from its beginning.
        """
        wanted = self.missing()
        if wanted is None or wanted[:2] != (segment, position) or not 0 < len(data) <= wanted[2]:
            raise InvalidArgument(f"segment {segment} at {position} was not asked for")
        info = self._waiting[-1]
        if self._file is None:
            self._file = self._opened(info)
        if self._scan is None:
            self._scan = Scan(self._file, info.base_offset, index_bytes=_INDEX_BYTES)
        self._file.pwrite([data], position)
        # Chunk by chunk: a whole segment at its end would keep the disk for so long that the sync
        # of the node's log, for which publishers wait, takes a hundred times as long as usual.
        self._file.datasync()
        self._position = position + len(data)
        self._scan.go_on(self._position)
        if self._position == info.bytes:
            # The whole segment is checked against the leader's checksums. A chunk that was damaged
            # on the way, or on the leader's disk, must not become a record here.
            if not self._is_sealed(self._file, info, self._scan.segment):
                self._restart(info)
                raise CorruptData(f"segment {segment} from the peer is not what its manifest says")
            self._next()

    def finish(self) -> None:
        """Make the partition's log exactly the manifest. The log must not be open."""
        if self.missing() is not None:
            raise InvalidArgument("an import is finished when nothing is missing")
        if not all(map(self._is_there, self.manifest.segments)):
            self._waiting = list(reversed(self.manifest.segments))
            # Retention or a compaction has run meanwhile, over a file that was counted as here.
            raise CorruptData("a segment that was to be kept has been removed; ask for it again")
        self._disk.sync_directory(self._folder)
        # The point of no return, written when every file is durable under its draft's name. Before
        # it a crash leaves the old log, behind it the new one, and nothing in between.
        replace_file(self._disk, f"{self._folder}/{IMPORT_DECIDED}", self.manifest.encode())
        complete_import(self._disk, self._folder)

    def discard(self) -> None:
        """Give up and remove what was copied; the log stays as it was."""
        self._close()
        for suffix in (IMPORT, IMPORT_FOOTER):
            for base in offsets_named(self._disk, self._folder, suffix):
                self._disk.remove(file_name(self._folder, base, suffix))
        self._disk.remove(f"{self._folder}/{IMPORT_MANIFEST}")
        self._disk.sync_directory(self._folder)
        self._waiting = list(reversed(self.manifest.segments))

    def _start(self, info: SegmentInfo) -> int:
        """Return how much of a segment is here: from an earlier attempt, or in the log itself."""
        local = file_name(self._folder, info.base_offset, SEGMENT)
        name = file_name(self._folder, info.base_offset, IMPORT)
        if not self._disk.exists(name):
            return info.bytes if self._holds(local, info) else 0
        self._file = self._disk.open(name)
        self._scan = Scan(self._file, info.base_offset, index_bytes=_INDEX_BYTES)
        self._scan.go_on(min(info.bytes, self._file.size()))
        # What comes next begins behind the last whole frame, which may be another one than before.
        self._scan.is_over = False
        good = self._scan.segment
        if good.bytes < info.bytes:
            return good.bytes
        if self._is_sealed(self._file, info, good):
            return info.bytes
        self._restart(info)
        return 0

    def _holds(self, name: str, info: SegmentInfo) -> bool:
        """Tell whether a file of the log begins with exactly the bytes listed."""
        if not self._disk.exists(name):
            return False
        file = self._disk.open(name)
        try:
            if not self._is_whole(file, info):
                return False
            file.datasync()  # it may be the active one, written and not yet synced
            return True
        finally:
            file.close()

    def _is_there(self, info: SegmentInfo) -> bool:
        names = (file_name(self._folder, info.base_offset, suffix) for suffix in (IMPORT, SEGMENT))
        return any(map(self._disk.exists, names))

    def _is_whole(self, file: File, info: SegmentInfo) -> bool:
        found, _, _ = scan(file, info.base_offset, index_bytes=_INDEX_BYTES, length=info.bytes)
        return _is_listed(found, info)

    def _is_sealed(self, file: File, info: SegmentInfo, found: Segment) -> bool:
        """Give a segment that is complete its footer; False if it is not what was listed."""
        file.truncate(info.bytes)
        file.datasync()
        if not _is_listed(found, info):
            return False
        write_footer(self._disk, self._folder, found, suffix=IMPORT_FOOTER)
        return True

    def _opened(self, info: SegmentInfo) -> File:
        name = file_name(self._folder, info.base_offset, IMPORT)
        if self._disk.exists(name):
            return self._disk.open(name)
        file = self._disk.create(name)
        file.preallocate(info.bytes)  # a full disk shows here
        return file

    def _restart(self, info: SegmentInfo) -> None:
        self._close()
        self._disk.remove(file_name(self._folder, info.base_offset, IMPORT_FOOTER))
        self._disk.remove(file_name(self._folder, info.base_offset, IMPORT))
        self._position = 0

    def _next(self) -> None:
        self._waiting.pop()
        self._close()

    def _close(self) -> None:
        self._position = None
        self._scan = None
        if self._file is not None:
            self._file.close()
            self._file = None


def complete_import(disk: Disk, folder: str, *, index_bytes: int = _INDEX_BYTES) -> None:
    """Carry out an import that was decided; nothing if there is none. May be repeated."""
    decided = f"{folder}/{IMPORT_DECIDED}"
    data = read_file(disk, decided)
    if data is None:
        return
    manifest = Manifest.decode(data)
    listed = {info.base_offset for info in manifest.segments}
    for base in offsets_named(disk, folder, IMPORT):
        if base in listed:
            disk.remove(file_name(folder, base, FOOTER))
            disk.rename(file_name(folder, base, IMPORT), file_name(folder, base, SEGMENT))
    for base in offsets_named(disk, folder, IMPORT_FOOTER):
        if base in listed:
            # One of an earlier attempt is found out below, and made anew.
            disk.rename(file_name(folder, base, IMPORT_FOOTER), file_name(folder, base, FOOTER))
        else:
            disk.remove(file_name(folder, base, IMPORT_FOOTER))
    for base in offsets_named(disk, folder, SEGMENT):
        if base not in listed:
            for suffix in (DELAYS, FOOTER, SEGMENT):
                disk.remove(file_name(folder, base, suffix))
    for info in manifest.segments:
        _seal(disk, folder, info, index_bytes=index_bytes)
    write_start_mark(disk, folder, manifest.start_offset)
    if manifest.stage != read_compacted_mark(disk, folder):
        write_compacted_mark(disk, folder, manifest.stage)
    disk.sync_directory(folder)
    # From here on the log is the new one. Until the decision is gone for good nobody may append.
    disk.remove(f"{folder}/{IMPORT_MANIFEST}")
    disk.remove(decided)
    disk.sync_directory(folder)


def _seal(disk: Disk, folder: str, info: SegmentInfo, *, index_bytes: int) -> None:
    """Cut an imported segment to the length listed and give it the footer that belongs to it."""
    footer = read_footer(disk, folder, info.base_offset)
    if footer is not None and _is_listed(footer, info):
        return
    try:
        file = disk.open(file_name(folder, info.base_offset, SEGMENT))
    except FileNotFoundError:
        raise CorruptData(f"segment {info.base_offset} vanished during an import") from None
    try:
        file.truncate(info.bytes)
        file.datasync()
        found, _, _ = scan(file, info.base_offset, index_bytes=index_bytes)
    finally:
        file.close()
    if not _is_listed(found, info):
        raise CorruptData(f"segment {info.base_offset} was damaged during an import")
    write_footer(disk, folder, found)


def _is_listed(segment: Segment, info: SegmentInfo) -> bool:
    found = (segment.next_offset, segment.bytes, segment.crc, segment.stamps)
    return found == (info.next_offset, info.bytes, info.crc32c, info.stamps_crc32c)
