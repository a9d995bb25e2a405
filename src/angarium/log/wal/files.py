"""The files of the write-ahead log: the one being written, those before it, those in waiting.

Two files are prepared in advance, so that a full disk shows before an append is accepted: the
*spare* becomes the next file of the log; the *reserve*, smaller, stands in for it when no spare
could be made, and is open only to what must get through on a full disk.

A prepared file gets its number in the sequence by a rename that is synced before its first byte is
written. So whatever bears the name of a log file had its full length, and read as zeros, before.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import DiskFull
from angarium.log.wal.config import SMOOTH_BYTES_MAX
from angarium.log.wal.format import (
    BARE_ROUND_BYTES,
    FILE_HEADER_BYTES,
    PAGE_BYTES,
    FileHeader,
    file_header,
    file_seed,
    frame_seed,
)
from angarium.log.wal.index import position_of, sequence_of

if TYPE_CHECKING:
    from angarium.ids import Buffer, RaftGroupId
    from angarium.log.disk import Disk, File
    from angarium.log.wal.config import WalConfig

FOLDER: Final = "wal"
_LOG: Final = ".log"
_SPARE: Final = ".spare"
_RESERVE: Final = ".reserve"

EXHAUSTED_SHARE: Final = 4
"""A log on a full disk counts as exhausted when less than this share (a quarter) of the reserve is
left: enough for what is under way."""

SMOOTHED_ROUND_BYTES_MAX: Final = 128 << 10
"""A sync round longer than this brings no zeros: it would only be written twice."""

_ZEROS: Final = bytes(SMOOTH_BYTES_MAX)


class WalFile:
    """One file of the sequence."""

    __slots__ = ("end", "file", "length", "prepared_name", "seed", "sequence", "smooth_until")

    def __init__(
        self, *, sequence: int, file: File, length: int, end: int, incarnation: int
    ) -> None:
        self.sequence: Final = sequence
        self.file: Final = file
        self.length: Final = length
        self.end = end
        """Where the next sync round will lie."""
        self.seed: Final = file_seed(incarnation, sequence)
        self.prepared_name: str | None = None
        """The name it has until its first sync round is written."""
        self.smooth_until = end
        """Up to where blocks have been written before; the writing thread's alone."""

    def smoothing(self, start: int, size: int, *, ahead_max: int) -> list[Buffer]:
        """Return the zeros to write behind the `size` bytes that go to `start`, if any.

        The file system has to note in its journal that a preallocated block is written for the
        first time, and a datasync waits for that; over a block that was written before it need
        not. So now and then zeros go ahead of small sync rounds, for many at once. A large one
        is worth its own note.
        """
        past = start + size
        if past <= self.smooth_until or size > SMOOTHED_ROUND_BYTES_MAX:
            return []
        ahead = min(ahead_max, self.length - past)
        self.smooth_until = past + ahead
        return [memoryview(_ZEROS)[:ahead]] if ahead > 0 else []

    def has_room(self, size: int) -> bool:
        """Tell whether `size` bytes fit, and a bare mark after them."""
        return size <= self.room

    @property
    def room(self) -> int:
        """How long the next sync round may be, if a bare mark is to follow it."""
        return self.length - self.end - BARE_ROUND_BYTES


class _Prepared:
    """A preallocated file that waits for its turn."""

    __slots__ = ("file", "length", "name")

    def __init__(self, name: str, file: File, length: int) -> None:
        self.name: Final = name
        self.file: Final = file
        self.length = length


class WalFiles:
    """All files of one log, as its owner sees them."""

    def __init__(self, disk: Disk, *, incarnation: int, config: WalConfig) -> None:
        self.disk: Final = disk
        self.incarnation: Final = incarnation
        self.frame_seed: Final = frame_seed(incarnation)
        self._config: Final = config
        self.files: dict[int, WalFile] = {}
        """By sequence, oldest first."""
        self.current: WalFile | None = None
        """The one that is written to; None if the next sync round must begin another."""
        self.hurt: set[RaftGroupId] = set()
        """Groups in whose entries damage was found while reading."""
        self.last_sequence = 0
        self.last_end = 0
        """Up to where the newest file is good, when there is no current one."""
        self._spare: _Prepared | None = None
        self._reserve: _Prepared | None = None
        self._prepared_count = 0

    @property
    def oldest(self) -> int:
        """The sequence number of the oldest file; that of the next one if there is none."""
        return next(iter(self.files), self.last_sequence + 1)

    # --- reading ----------------------------------------------------------------------------

    def read(self, where: int, length: int) -> bytes:
        """Return up to `length` bytes of the file and position that `where` names."""
        return self.files[sequence_of(where)].file.pread(length, position_of(where))

    # --- writing ----------------------------------------------------------------------------

    def smoothing(self, file: WalFile, start: int, size: int) -> list[Buffer]:
        """Return the zeros that go to disk with a sync round, see `WalFile.smoothing`."""
        return file.smoothing(start, size, ahead_max=self._config.smooth_bytes)

    # --- room -------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """True while there is no room for the file after the current one."""
        return self._spare is None

    def is_exhausted(self, waiting: int, *, table_bytes: int) -> bool:
        """Tell whether, without a spare, little fits besides `waiting` bytes of frames."""
        if self._reserve is not None:
            room = self._reserve.length - FILE_HEADER_BYTES - table_bytes
        else:
            room = 0 if self.current is None else self.current.room
        return room - waiting < self._config.reserve_bytes // EXHAUSTED_SHARE

    def prepare(self) -> None:
        """Make the files in waiting that are missing, as far as there is room."""
        if self._reserve is None:
            self._reserve = self._prepared(_RESERVE, self._config.reserve_bytes)
        if self._spare is None:
            self._spare = self._prepared(_SPARE, self._config.file_bytes)

    def claim(self, size: int, *, in_new_file: int, is_vital: bool) -> None:
        """Make sure that a sync round has room, or raise `DiskFull`.

        It takes `size` bytes in the current file, or `in_new_file`, headers included, in another.
        """
        if self._spare is None:
            self.prepare()
            # The next file must be there before the current one is full: a log that finds out at a
            # file's end that the disk is full has nowhere to put the vote it has to remember.
            if self._spare is None and not is_vital:
                raise DiskFull("no room for the next file of the write-ahead log")
        if self.current is not None and self.current.has_room(size):
            return
        waiting = self._spare or self._reserve
        if waiting is None:
            raise DiskFull("the reserve of the write-ahead log is used up")
        needed = in_new_file + BARE_ROUND_BYTES
        # A single round may be longer than a file. It gets a longer one; nothing is ever split
        # over two.
        if needed > waiting.length:
            length = -(-needed // PAGE_BYTES) * PAGE_BYTES
            waiting.file.preallocate(length)
            waiting.length = length

    def begin_file(self, previous_end: int) -> tuple[WalFile, bytes]:
        """Make the next file the current one; return it and its header."""
        waiting = self._spare or self._reserve
        assert waiting is not None, "claim comes before"
        if self._spare is None:
            self._reserve = None
        self._spare = None
        self.last_sequence += 1
        header = FileHeader(self.last_sequence, self.incarnation, waiting.length, previous_end)
        begun = WalFile(
            sequence=self.last_sequence,
            file=waiting.file,
            length=waiting.length,
            end=FILE_HEADER_BYTES,
            incarnation=self.incarnation,
        )
        begun.prepared_name = waiting.name
        self.current = self.files[begun.sequence] = begun
        self.prepare()
        return begun, file_header(header)

    def install(self, begun: WalFile) -> None:
        """Give a begun file its name for good. Blocks; touches nothing that the owner uses."""
        assert begun.prepared_name is not None
        # The preallocated length must be durable before the name is: a `*.log` file that is
        # shorter than its header says counts as cut by somebody.
        begun.file.datasync()
        self.disk.rename(begun.prepared_name, log_name(begun.sequence))
        self.disk.sync_directory(FOLDER)

    def drop_oldest(self) -> None:
        """Delete the oldest file, durably: a gap in the sequence would look like a loss."""
        sequence = next(iter(self.files))
        self.files.pop(sequence).file.close()
        # Oldest first and one at a time, each durable before the next: a crash in between leaves a
        # sequence without gaps.
        self.disk.remove(log_name(sequence))
        self.disk.sync_directory(FOLDER)

    def close(self) -> None:
        """Close every file."""
        for one in self.files.values():
            one.file.close()
        for waiting in (self._spare, self._reserve):
            if waiting is not None:
                waiting.file.close()

    # --- opening ----------------------------------------------------------------------------

    def adopt_prepared(self) -> None:
        """Take over what an earlier run had prepared, and make what is missing."""
        for name in self.disk.list(FOLDER):
            path = f"{FOLDER}/{name}"
            if name.endswith(_SPARE) and self._spare is None:
                self._spare = self._reopened(path, self._config.file_bytes)
            elif name.endswith(_RESERVE) and self._reserve is None:
                self._reserve = self._reopened(path, self._config.reserve_bytes)
            elif name.endswith((_SPARE, _RESERVE)):
                self.disk.remove(path)
        self.prepare()

    def _reopened(self, path: str, length: int) -> _Prepared | None:
        return self._preallocated(path, self.disk.open(path), length)

    def _prepared(self, suffix: str, length: int) -> _Prepared | None:
        # A preallocation that fails half way fills the disk for a moment, for everybody on it.
        if self.disk.free_bytes() < length:
            return None
        while self.disk.exists(path := f"{FOLDER}/{self._prepared_count:08d}{suffix}"):
            self._prepared_count += 1
        return self._preallocated(path, self.disk.create(path), length)

    def _preallocated(self, path: str, file: File, length: int) -> _Prepared | None:
        try:
            file.preallocate(length)
        except DiskFull:
            file.close()
            self.disk.remove(path)
            return None
        return _Prepared(path, file, max(length, file.size() // PAGE_BYTES * PAGE_BYTES))


def log_name(sequence: int) -> str:
    """Return the name of a file of the log."""
    return f"{FOLDER}/{sequence:016d}{_LOG}"


def log_sequences(disk: Disk) -> list[int]:
    """Return the sequence numbers of the files that are there, in order."""
    sequences = []
    for name in disk.list(FOLDER):
        if name.endswith(_LOG):
            with suppress(ValueError):
                sequences.append(int(name.removesuffix(_LOG)))
    return sorted(sequences)
