"""Sync rounds on their way to the disk: placed in order, written one by one, published.

Every sync round carries a *mark*: the position up to which bytes had been synced before it was
written. Because the one before it was, that is where it begins itself, unless a bare mark lies
in between, which is written without a sync.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from angarium.errors import StorageError, SyncFailed
from angarium.log.wal.format import (
    BARE_GROUP_BYTES,
    END_MARK,
    FILE_HEADER_BYTES,
    GroupFlag,
    group_header,
)
from angarium.log.wal.index import place

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Buffer
    from angarium.log.wal.files import WalFile, WalFiles
    from angarium.log.wal.writer import FrameBuffer, Touch


class SyncRound:
    """What one write and one datasync cover. Made by `seal`, written once, then published."""

    __slots__ = ("_pipeline", "buffers", "file", "is_written", "position", "previous", "touches")

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        file: WalFile,
        position: int,
        buffers: list[Buffer],
        touches: list[Touch],
        previous: SyncRound | None,
    ) -> None:
        self._pipeline = pipeline
        self.previous = previous
        """The one that has to be written before it."""
        self.touches: Final = touches
        """What it has of each Raft group."""
        self.file: Final = file
        self.position: Final = position
        self.buffers: Final = buffers
        self.is_written = False

    @property
    def size(self) -> int:
        """How many bytes are written."""
        return sum(map(len, self.buffers))

    def write(self) -> None:
        """Put it on disk, durably. Blocks, and is the only part that may run in another thread.

        Raises `SyncFailed`, after which the log is dead: nobody knows what the disk has.
        """
        pipeline, files = self._pipeline, self._pipeline.files
        pipeline.check_alive()
        assert self.previous is None or self.previous.is_written, "rounds are written in order"
        try:
            if self.position == 0:  # it begins a file, which has to get its name first
                files.install(self.file)
            zeros = files.smoothing(self.file, self.position, self.size)
            self.file.file.pwrite([*self.buffers, *zeros], self.position)
            self.file.file.datasync()
        except BaseException as error:
            pipeline.die(error)
            if isinstance(error, StorageError):
                pipeline.check_alive()
            raise
        self.previous = None
        self.is_written = True


class Pipeline:
    """The way from a full buffer to durable bytes."""

    def __init__(self, files: WalFiles) -> None:
        self.files: Final = files
        self._in_flight: deque[SyncRound] = deque()
        """Sealed, and not published yet."""
        self._last_sealed: SyncRound | None = None
        self._bare_mark: int | None = None
        """Where an unsynced bare mark lies, while it is the last thing in the file."""
        self._has_unmarked = files.current is not None
        """A published sync round waits for the mark of a next one."""
        self.durable_sequence = files.last_sequence
        """The file of the newest published sync round."""
        current = files.current
        self.opened_end = place(
            files.last_sequence, files.last_end if current is None else current.end
        )
        """Where the log ended when it was opened: file and position, as one number."""
        self.durable_end = 0
        """Where the last sync round ends that this process has synced; 0 before the first one."""
        self.failure: StorageError | None = None
        """Why nothing more is taken: closed, or dead."""

    def check_alive(self) -> None:
        """Raise `SyncFailed` if a write has failed before, `StorageError` after the close."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args) from self.failure.__cause__

    def die(self, error: BaseException) -> None:
        """Take nothing more: a write has failed, and nobody knows what the disk has."""
        self.failure = SyncFailed(f"the write-ahead log is dead, restart the node: {error!s}")
        self.failure.__cause__ = error

    def seal(self, buffer: FrameBuffer, table: Callable[[], bytes]) -> SyncRound:
        """Give what is buffered its position in a file."""
        file = self.files.current
        header = b""
        if file is not None and file.has_room(buffer.group_bytes(0, 0)):
            position = write_position = file.end
            mark = position if self._bare_mark is None else self._bare_mark
            flags, rows = 0, b""
        else:
            mark = self._synced_end()
            file, header = self.files.begin_file(mark)
            position, write_position = FILE_HEADER_BYTES, 0
            flags, rows = GroupFlag.FIRST, table()
        buffers, file.end = buffer.sealed(
            file=file, position=position, mark=mark, flags=flags, table=rows
        )
        if header:
            buffers.insert(0, header)
        sync_round = SyncRound(
            self,
            file=file,
            position=write_position,
            buffers=buffers,
            touches=list(buffer.touches.values()),
            previous=self._last_sealed,
        )
        self._bare_mark = None
        self._last_sealed = sync_round
        self._in_flight.append(sync_round)
        return sync_round

    def _synced_end(self) -> int:
        """Return where the newest file ends, for the header of the next one."""
        if self._bare_mark is not None:
            return self._bare_mark
        return self.files.last_end if self.files.current is None else self.files.current.end

    def publish(self, sync_round: SyncRound) -> None:
        """Take note that `sync_round` is durable."""
        assert sync_round.is_written, "publish comes after write"
        assert sync_round is self._in_flight[0], "sync rounds are published in order"
        self._in_flight.popleft()
        self.durable_sequence = sync_round.file.sequence
        self.durable_end = place(sync_round.file.sequence, sync_round.position + sync_round.size)
        self._has_unmarked = True

    def mark(self) -> bool:
        """Write a bare mark, unsynced; False if nothing waits for one or something is under way."""
        current = self.files.current
        if not self._has_unmarked or self._in_flight or current is None or not current.has_room(0):
            return False
        position = current.end
        header = group_header(
            flags=0,
            length=BARE_GROUP_BYTES,
            mark=position,
            frames=0,
            zero_sectors=0,
            seed=current.seed,
            position=position,
        )
        try:
            current.file.pwrite([header, END_MARK], position)
        except StorageError as error:
            self.die(error)
            self.check_alive()
        current.end += BARE_GROUP_BYTES
        self._bare_mark = position
        self._has_unmarked = False
        return True

    def close(self) -> None:
        """Leave a durable mark behind, and take no more."""
        assert not self._in_flight, "a sync round is still being written"
        self.mark()
        if self.files.current is not None:
            self.files.current.file.datasync()
        self.failure = StorageError("the write-ahead log is closed")
