"""Side files for staged batches: what a transaction has written and not yet decided.

A stage is a list of parts, each one or more batches as the producer sent them; offsets are stamped
when the commit applies and the batches enter the segments. Parts are numbered, so what the
write-ahead log brings again after a crash is recognised and skipped.

The write-ahead log has every part before it comes here. A part is written by the next flush only
if its stage is still open then: most transactions are decided before that and never touch a file.
The owner drops a stage when its batches are durable elsewhere, or the transaction is aborted. It
gives up a part of the write-ahead log only after a `sync` that followed it.

A stage may be far larger than memory: it is read, verified and copied to peers part by part. Its
number is never used again and its parts come in the order of the log, so that the same stage on
another replica has the same parts, or the first of them: a replica that lacks some asks for them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.batch import split
from angarium.batch.checksum import crc32c
from angarium.errors import CorruptData

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from angarium.ids import Buffer
    from angarium.log.disk import Disk, File

_PART: Final = struct.Struct("<4sIqQQI4x")
"""Magic, checksum of the content, stage, number of the part, length, checksum of what precedes."""
_MAGIC: Final = b"ANGS"
_CRC_START: Final = 32
_SUFFIX: Final = ".stage"


class _Stage:
    """One stage: parts on disk first, then parts in memory."""

    __slots__ = ("ends", "is_lacking", "waiting", "written_bytes", "written_parts")

    def __init__(self) -> None:
        self.ends: list[int] = []
        """Where each part ends in the file, or will when it is written."""
        self.is_lacking = False
        """A part came whose predecessors are not here."""
        self.written_parts = 0
        self.written_bytes = 0
        self.waiting: list[Buffer] = []
        """Heads and contents of parts that are in memory only, alternating."""

    @property
    def parts(self) -> int:
        return len(self.ends)

    @property
    def bytes(self) -> int:
        return self.ends[-1] if self.ends else 0

    def start(self, part: int) -> int:
        return self.ends[part - 1] if part else 0


@dataclass(frozen=True, slots=True)
class StageFlush:
    """Parts on their way to disk: for each stage where in its file, and what."""

    writes: Sequence[tuple[int, int, tuple[Buffer, ...]]]


class StageStore:
    """All stages of one partition. Opening ignores what a power cut tore: it comes again."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._stages: dict[int, _Stage] = {}
        self._flush: StageFlush | None = None
        self._dropped: list[int] = []
        """Stages whose files are still there, though nobody needs them any more."""
        self.waiting_bytes = 0
        """How much is in memory only. The owner flushes before it becomes too much."""
        disk.make_folder(folder)
        for name in disk.list(folder):
            stem = name.removesuffix(_SUFFIX)
            if stem != name and stem.isdecimal():
                self._recover(int(stem))

    def size(self, stage: int) -> int:
        """Return how much a stage holds; 0 for one that is not here."""
        return self._stages[stage].bytes if stage in self._stages else 0

    def parts(self, stage: int) -> int:
        """Return how many parts a stage has; 0 for one that is not here."""
        return self._stages[stage].parts if stage in self._stages else 0

    def lacking(self, expected: Mapping[int, int]) -> list[int]:
        """Return those stages that have fewer parts than the machine's state says they have.

        Asked right after opening, with the state of the snapshot: such stages were durable and
        are damaged. Their transactions cannot commit here without a copy from a peer.
        """
        return [stage for stage, parts in expected.items() if self.parts(stage) < parts]

    # --- appending --------------------------------------------------------------------------

    def append(self, stage: int, part: int, batches: Buffer) -> None:
        """Add the part numbered `part`; one that is here already came again and is skipped.

        A part that comes before its predecessor belongs to a stage that had been dropped before
        a crash: it will be dropped again, and cannot be read meanwhile.
        """
        known = self._stages.setdefault(stage, _Stage())
        known.is_lacking = known.is_lacking or part > known.parts
        # Here already, from before a restart; or behind a hole, and then the stage cannot be read.
        if part != known.parts:
            return
        head = _head(stage, part, batches)
        known.waiting += (head, batches)
        size = len(head) + len(batches)
        known.ends.append(known.bytes + size)
        self.waiting_bytes += size

    def drop(self, stage: int) -> None:
        """Forget a stage; one that is not here is fine. Its file goes with `take_dropped`."""
        known = self._stages.pop(stage, None)
        if known is not None:
            self.waiting_bytes -= known.bytes - known.written_bytes
            if known.written_bytes:
                self._dropped.append(stage)

    def take_dropped(self) -> list[int]:
        """Return the stages whose files are to be removed, once."""
        taken, self._dropped = self._dropped, []
        return taken

    def remove(self, stages: Iterable[int]) -> None:
        """Remove the files of dropped stages; may run in a thread. What is left goes at opening."""
        for stage in stages:
            self._disk.remove(self._name(stage))

    @property
    def has_dropped(self) -> bool:
        """Whether there are files to be removed."""
        return bool(self._dropped)

    def retain(self, stages: Iterable[int]) -> None:
        """Drop all stages but these, files included: what the machine does not know."""
        for stage in set(self._stages) - set(stages):
            self.drop(stage)
        self.remove(self.take_dropped())

    # --- reading ----------------------------------------------------------------------------

    def read(self, stage: int) -> list[memoryview]:
        """Return the batches of a stage in the order they were staged; for one that is small.

        `CorruptData` if the stage is not here or a part of it is damaged.
        """
        return [batch for part in self._contents(stage) for batch in split(part)]

    def part(self, stage: int, part: int) -> bytes:
        """Return one part. `CorruptData` if it is not here, or damaged; may run in a thread."""
        known = self._stages.get(stage)
        # Publishing a stage with a hole would commit less than was promised.
        if known is None or known.is_lacking or not 0 <= part < known.parts:
            raise CorruptData(f"stage {stage} is not here, or not all of it")
        if part >= known.written_parts:
            return bytes(known.waiting[2 * (part - known.written_parts) + 1])
        file = self._disk.open(self._name(stage))
        try:
            content = _read_part(file, stage, part, known.start(part), known.ends[part])
        finally:
            file.close()
        if content is None:
            raise CorruptData(f"stage {stage} is damaged in part {part}")
        return content

    def contents(self) -> dict[int, list[bytes]]:
        """Return the parts of every stage, for a snapshot that a peer may install."""
        return {stage: list(self._contents(stage)) for stage in sorted(self._stages)}

    def replace(self, contents: Mapping[int, Sequence[Buffer]]) -> None:
        """Hold exactly these stages from now on, durably: what another replica's snapshot had."""
        self.retain(())
        self._disk.sync_directory(self._folder)
        for stage, parts in contents.items():
            for number, part in enumerate(parts):
                self.append(stage, number, part)
        self.sync()

    def _contents(self, stage: int) -> Iterator[bytes]:
        known = self._stages.get(stage)
        # One without a part is not here: it says so by asking for the first.
        return (self.part(stage, part) for part in range(max(known.parts, 1) if known else 1))

    # --- flushing ---------------------------------------------------------------------------

    def take(self) -> StageFlush | None:
        """Return what is to be written now; None if there is nothing, or a flush is under way."""
        if self._flush is not None:
            return None
        writes = [
            (stage, known.written_bytes, tuple(known.waiting))
            for stage, known in self._stages.items()
            if known.waiting
        ]
        self._flush = StageFlush(writes) if writes else None
        return self._flush

    def write(self, flush: StageFlush) -> None:
        """Make it durable; may run in a thread. Raises `DiskFull`, or `SyncFailed`, fatally."""
        for stage, position, buffers in flush.writes:
            name = self._name(stage)
            file = self._disk.open(name) if self._disk.exists(name) else self._disk.create(name)
            try:
                file.pwrite(buffers, position)
                file.datasync()
            finally:
                file.close()
        # The names, too: the write-ahead log gives up these parts once this has returned.
        self._disk.sync_directory(self._folder)

    def flushed(self, flush: StageFlush) -> None:
        """Let go of the memory of what has been written."""
        self.failed(flush)
        for stage, position, buffers in flush.writes:
            known = self._stages.get(stage)
            if known is None:
                self._dropped.append(stage)  # while it was being written
                continue
            size = sum(map(len, buffers))
            known.written_bytes = position + size
            known.written_parts += len(buffers) // 2
            del known.waiting[: len(buffers)]
            self.waiting_bytes -= size

    def failed(self, flush: StageFlush) -> None:
        """Give up a flush that could not be written; everything in it is still in memory."""
        assert flush is self._flush, "one flush at a time"
        self._flush = None

    def sync(self) -> None:
        """Make every stage survive a power cut."""
        flush = self.take()
        if flush is None:
            return
        try:
            self.write(flush)
        except BaseException:
            self.failed(flush)
            raise
        self.flushed(flush)

    # --- opening ----------------------------------------------------------------------------

    def _recover(self, stage: int) -> None:
        """Take up what a file holds, without what a power cut tore; that is written over later."""
        known = self._stages[stage] = _Stage()
        file = self._disk.open(self._name(stage))
        try:
            size = file.size()
            # Up to the first part that is not whole. If it was durable, `lacking` will say so; if
            # not, the log brings it again.
            while (part := _read_part(file, stage, known.parts, known.bytes, size)) is not None:
                known.ends.append(known.bytes + _PART.size + len(part))
        finally:
            file.close()
        known.written_parts, known.written_bytes = known.parts, known.bytes

    def _name(self, stage: int) -> str:
        return f"{self._folder}/{stage:020d}{_SUFFIX}"


def _head(stage: int, part: int, content: Buffer) -> bytes:
    head = _PART.pack(_MAGIC, crc32c(content), stage, part, len(content), 0)[:_CRC_START]
    return head + crc32c(head).to_bytes(4, "little") + bytes(4)


def _read_part(file: File, stage: int, part: int, start: int, size: int) -> bytes | None:
    """Return the part that begins at `start`; None if it is not whole within `size` bytes."""
    if size - start < _PART.size:
        return None
    head = file.pread(_PART.size, start)
    magic, crc, owner, number, length, head_crc = _PART.unpack(head)
    is_head = (
        magic == _MAGIC
        and (owner, number) == (stage, part)
        and crc32c(head[:_CRC_START]) == head_crc
        and length <= size - start - _PART.size
    )
    if not is_head:
        return None
    content = file.pread(length, start + _PART.size)
    return content if len(content) == length and crc32c(content) == crc else None
