"""Side files for staged batches: what a transaction has written and not yet decided.

A stage is a list of parts, each one or more batches as the producer sent them; offsets are stamped
when the commit applies and the batches enter the segments. Parts are numbered, so what the
write-ahead log brings again after a crash is recognised and skipped.

The write-ahead log has every part before it comes here. A part is written by the next flush only
if its stage is still open then: most transactions are decided before that and never touch a file.
The owner drops a stage when its batches are durable elsewhere, or the transaction is aborted. It
gives up a part of the write-ahead log only after a `sync` that followed it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.batch import split
from angarium.batch.checksum import crc32c
from angarium.errors import CorruptData, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.ids import Buffer
    from angarium.log.disk import Disk, File

STAGES_BYTES_MAX: Final = 512 << 20
"""Bytes of all stages of a partition together, twice what the machine admits, because dropped
stages stay until the owner lets them go. At the limit an append is refused, retriably."""

_PART: Final = struct.Struct("<4sIqQQI4x")
"""Magic, checksum of the content, stage, number of the part, length, checksum of what precedes."""
_MAGIC: Final = b"ANGS"
_CRC_START: Final = 32
_SUFFIX: Final = ".stage"


class _Stage:
    """One stage: parts on disk first, then parts in memory."""

    __slots__ = ("bytes", "is_lacking", "parts", "waiting", "written_bytes")

    def __init__(self) -> None:
        self.parts = 0
        self.is_lacking = False
        """A part came whose predecessors are not here."""
        self.bytes = 0
        self.written_bytes = 0
        self.waiting: list[Buffer] = []
        """Heads and contents of parts that are in memory only, alternating."""


@dataclass(frozen=True, slots=True)
class StageFlush:
    """Parts on their way to disk: for each stage where in its file, and what."""

    writes: Sequence[tuple[int, int, tuple[Buffer, ...]]]


class StageStore:
    """All stages of one partition. Opening ignores what a power cut tore: it comes again."""

    def __init__(self, disk: Disk, folder: str, *, bytes_max: int = STAGES_BYTES_MAX) -> None:
        self._disk = disk
        self._folder = folder
        self._bytes_max = bytes_max
        self._stages: dict[int, _Stage] = {}
        self._bytes = 0
        self._flush: StageFlush | None = None
        disk.make_folder(folder)
        for name in disk.list(folder):
            stem = name.removesuffix(_SUFFIX)
            if stem != name and stem.isdecimal():
                self._recover(int(stem))

    @property
    def held_bytes(self) -> int:
        """How much all stages hold together."""
        return self._bytes

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
        if self._bytes + len(batches) > self._bytes_max:
            raise LimitExceeded("STAGES_BYTES_MAX", "transactions must end before others go on")
        known = self._stages.setdefault(stage, _Stage())
        known.is_lacking = known.is_lacking or part > known.parts
        if part != known.parts:
            return
        head = _head(stage, part, batches)
        known.waiting += (head, batches)
        known.parts += 1
        self._grow(known, len(head) + len(batches))

    def drop(self, stage: int) -> None:
        """Forget a stage; one that is not here is fine."""
        known = self._stages.pop(stage, None)
        if known is not None:
            self._bytes -= known.bytes
            self._disk.remove(self._name(stage))

    def retain(self, stages: Iterable[int]) -> None:
        """Drop all stages but these: after a restart, what the machine does not know."""
        for stage in set(self._stages) - set(stages):
            self.drop(stage)

    # --- reading ----------------------------------------------------------------------------

    def read(self, stage: int) -> list[memoryview]:
        """Return the batches of a stage in the order they were staged.

        `CorruptData` if the stage is not here or a part of it is damaged.
        """
        return [batch for part in self._contents(stage) for batch in split(part)]

    def contents(self) -> dict[int, list[bytes]]:
        """Return the parts of every stage, for a snapshot that a peer may install."""
        return {stage: self._contents(stage) for stage in sorted(self._stages)}

    def replace(self, contents: Mapping[int, Sequence[Buffer]]) -> None:
        """Hold exactly these stages from now on, durably: what another replica's snapshot had."""
        self.retain(())
        self._disk.sync_directory(self._folder)
        for stage, parts in contents.items():
            for number, part in enumerate(parts):
                self.append(stage, number, part)
        self.sync()

    def _contents(self, stage: int) -> list[bytes]:
        known = self._stages.get(stage)
        if known is None or known.is_lacking or known.parts == 0:
            raise CorruptData(f"stage {stage} is not here, or not all of it")
        parts: list[bytes] = []
        if known.written_bytes:
            file = self._disk.open(self._name(stage))
            try:
                parts, end = _read_parts(file, stage, known.written_bytes)
            finally:
                file.close()
            if end < known.written_bytes:
                raise CorruptData(f"stage {stage} is damaged from part {len(parts)} on")
        return [*parts, *(bytes(content) for content in known.waiting[1::2])]

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
        self._disk.sync_directory(self._folder)

    def flushed(self, flush: StageFlush) -> None:
        """Let go of the memory of what has been written."""
        self.failed(flush)
        for stage, position, buffers in flush.writes:
            known = self._stages.get(stage)
            if known is None:
                self._disk.remove(self._name(stage))  # dropped while it was being written
                continue
            known.written_bytes = position + sum(map(len, buffers))
            del known.waiting[: len(buffers)]

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
        file = self._disk.open(self._name(stage))
        try:
            parts, end = _read_parts(file, stage, file.size())
        finally:
            file.close()
        known = self._stages[stage] = _Stage()
        known.parts = len(parts)
        known.written_bytes = end
        self._grow(known, end)

    def _grow(self, stage: _Stage, size: int) -> None:
        stage.bytes += size
        self._bytes += size

    def _name(self, stage: int) -> str:
        return f"{self._folder}/{stage:020d}{_SUFFIX}"


def _head(stage: int, part: int, content: Buffer) -> bytes:
    head = _PART.pack(_MAGIC, crc32c(content), stage, part, len(content), 0)[:_CRC_START]
    return head + crc32c(head).to_bytes(4, "little") + bytes(4)


def _read_parts(file: File, stage: int, size: int) -> tuple[list[bytes], int]:
    """Return the whole parts in the first `size` bytes of a file, and where they end."""
    data = file.pread(size, 0)
    parts: list[bytes] = []
    position = 0
    while len(data) - position >= _PART.size:
        magic, crc, owner, part, length, head_crc = _PART.unpack_from(data, position)
        start = position + _PART.size
        content = data[start : start + length]
        is_whole = (
            magic == _MAGIC
            and (owner, part) == (stage, len(parts))
            and crc32c(data[position : position + _CRC_START]) == head_crc
            and len(content) == length
            and crc32c(content) == crc
        )
        if not is_whole:
            break
        parts.append(content)
        position = start + length
    return parts, position
