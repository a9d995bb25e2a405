"""A disk that behaves as badly as the port allows, from one seed.

It keeps the current bytes of every file and, beside them, how to undo each write that no
`datasync` has covered. A power loss then plays a lottery: every unsynced 512-byte sector goes back
by some number of writes (so writes are lost, torn, and survive out of order), every unsynced
length likewise, and every name that was created, renamed or removed without `sync_directory`
counts or does not. What was synced is never touched, except by `flip_bit` and `truncate`, which
stand for a disk that breaks its own promises.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.errors import DiskFull, StorageError, SyncFailed
from angarium.log.disk import SECTOR_BYTES
from angarium.log.memory_disk import ROOMY, Content, MemoryDisk, MemoryFile, folder_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

    from angarium.ids import Buffer

PAGE_BYTES: Final = 4_096
"""What a file system writes at once, and a disk may forget to."""

_SURVIVAL: Final = (0.0, 0.1, 0.5, 0.9, 1.0)
"""The chances of an unsynced sector; one is drawn per file, so that "all lost", "one sector lost"
and "nothing lost" all come up often."""


class _Undo(NamedTuple):
    """What to do to take back one write."""

    position: int
    size: int
    old: bytes | bytearray
    """The bytes that were there; shorter than `size` where the file had zeros or ended."""
    length: int
    """How long the file was."""


class SimulatedContent(Content):
    """The bytes of one file, and the way back to what is surely on the platter."""

    __slots__ = ("undo",)

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[_Undo] = []

    def lose_unsynced(self, rng: random.Random) -> None:
        """Let chance decide which unsynced sectors, and which length, the platter has."""
        survival = rng.choice(_SURVIVAL)
        writes = Counter(sector for undo in self.undo for sector in _sectors(undo))
        back = {sector: _steps_back(rng, count, survival) for sector, count in writes.items()}
        lengths = [undo.length for undo in self.undo] + [self.length]
        length = lengths[len(lengths) - 1 - _steps_back(rng, len(self.undo), survival)]
        # Newest first: each sector takes back its last writes, as many as it drew.
        for undo in reversed(self.undo):
            for sector in _sectors(undo):
                if back[sector]:
                    back[sector] -= 1
                    self._restore(undo, sector)
        self.undo.clear()
        self.data = self.data[:length]
        self.length = length

    def _restore(self, undo: _Undo, sector: int) -> None:
        start = max(undo.position, sector * SECTOR_BYTES)
        end = min(undo.position + undo.size, (sector + 1) * SECTOR_BYTES)
        old = undo.old[start - undo.position : end - undo.position]
        self.write(old.ljust(end - start, b"\0"), start)


class SimulatedFile(MemoryFile):
    """An open file that remembers how to lose what it was given."""

    __slots__ = ("_life", "_simulated", "_simulation")

    def __init__(self, disk: SimulatedDisk, content: SimulatedContent, name: str) -> None:
        super().__init__(disk, content, name)
        self._simulation = disk
        self._simulated = content
        self._life = disk.life

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        self._check_open()
        self._simulation.settle()
        data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        content = self._simulated
        end = position + len(data)
        fits = end <= content.length or self._simulation.has_room(end - content.length)
        if not fits:
            end = max(position, content.length + self._simulation.free_bytes())
            data = data[: end - position]
        content.undo.append(
            _Undo(position, len(data), content.data[position:end], content.length),
        )
        content.write(data, position)
        if not fits:
            raise DiskFull(f"{self._name}: only {len(data)} bytes fitted")

    def preallocate(self, length: int) -> None:
        before = self._simulated.length
        super().preallocate(length)
        self._simulated.undo.append(_Undo(length, 0, b"", before))

    def truncate(self, length: int) -> None:
        self._check_open()
        content = self._simulated
        tail = bytes(content.data[length:])
        content.undo.append(_Undo(length, len(tail), tail, content.length))
        content.resize(length)

    def datasync(self) -> None:
        self._check_open()
        content = self._simulated
        self._simulation.check_sync(content, self._name)
        if self._simulation.is_deferring:
            self._simulation.defer(content)
        else:
            content.undo.clear()

    def _check_open(self) -> None:
        if self._life != self._simulation.life:
            raise StorageError(f"{self._name}: the process that opened it is dead")
        if not self._open:
            raise StorageError(f"{self._name} is closed")


class _NameChange(NamedTuple):
    """A change of names that no `sync_directory` has covered."""

    removed: str | None = None
    added: str | None = None
    content: SimulatedContent | None = None
    folder: str | None = None
    """A folder that was removed with all that is in it."""

    def is_in(self, folder: str) -> bool:
        names = (self.removed, self.added, self.folder)
        return any(name is not None and folder_of(name) == folder for name in names)

    def is_below(self, folder: str) -> bool:
        within = f"{folder}/"
        names = (self.removed, self.added, self.folder)
        return any(name is not None and name.startswith(within) for name in names)

    def apply(self, files: dict[str, Content], folders: set[str]) -> None:
        if self.removed is not None:
            files.pop(self.removed, None)
        if self.added is not None and self.content is not None:
            files[self.added] = self.content
        if self.folder is not None:
            within = f"{self.folder}/"
            for name in [name for name in files if name.startswith(within)]:
                del files[name]
            folders -= {name for name in folders if f"{name}/".startswith(within)}


class SimulatedDisk(MemoryDisk):
    """A memory disk with power losses, crashes, failing syncs, flipped bits and a capacity.

    The same `rng` seed and the same calls give the same outcome.
    """

    def __init__(self, rng: random.Random, *, capacity_bytes: int = ROOMY) -> None:
        super().__init__(capacity_bytes=capacity_bytes)
        self._rng = rng
        self._durable_files: dict[str, Content] = {}
        self._durable_folders: set[str] = {""}
        self._unsynced_names: list[_NameChange] = []
        self._failing_syncs = 0
        self._deferred: list[tuple[SimulatedContent, _Undo]] | None = None
        self.life = 0
        """Counts crashes and power losses; a file opened in an earlier life is dead."""

    # --- faults -----------------------------------------------------------------------------

    def power_loss(self) -> None:
        """Cut the power: what was not synced is subject to chance, every open file is dead."""
        self._end_process()
        files, folders = dict(self._durable_files), set(self._durable_folders)
        survival = self._rng.choice(_SURVIVAL)
        for change in self._unsynced_names:
            if self._rng.random() < survival:
                change.apply(files, folders)
        self._unsynced_names.clear()
        self._files, self._folders = files, folders
        self._durable_files, self._durable_folders = dict(files), set(folders)
        for name in files:
            content = self._simulated(name)
            if content.undo:
                content.lose_unsynced(self._rng)

    def crash(self) -> None:
        """Kill the process: the system still has every byte, but every open file is dead."""
        self._end_process()

    def _end_process(self) -> None:
        self.life += 1
        # The kernel keeps it for a process, and not for a moment longer.
        self._lock = None

    def copied(self) -> dict[str, tuple[bytes, int]]:
        """Return a copy of every file as it is now: its bytes and its length."""
        return {name: (bytes(one.data), one.length) for name, one in self._files.items()}

    def roll_back(self, copy: Mapping[str, tuple[bytes, int]], prefix: str = "") -> None:
        """Put an older copy in the place of all files, or of those whose name begins with `prefix`.

        Only while nothing runs on the disk.
        """
        self.life += 1
        self._unsynced_names.clear()
        files = {name: one for name, one in self._files.items() if not name.startswith(prefix)}
        for name, (data, length) in copy.items():
            if name.startswith(prefix):
                content = files[name] = SimulatedContent()
                content.data, content.length = bytearray(data), length
        self._files = files
        self._durable_files, self._durable_folders = dict(files), set(self._folders)

    def fail_syncs(self, count: int) -> None:
        """Let the next `count` syncs fail; the bytes they should have covered may be gone."""
        self._failing_syncs = count

    def flip_bit(self, name: str, position: int, *, bit: int = 0) -> None:
        """Damage one bit of a file where it lies."""
        content = self._existing(name)
        byte = content.read(1, position)[0] ^ 1 << bit
        content.write(bytes([byte]), position)

    def lose_write(self, name: str, position: int) -> None:
        """Have the page around `position` hold what it did before its last writes.

        Files of the log are written from front to back, so an old page has zeros behind some point.
        """
        content = self._existing(name)
        end = min(position - position % PAGE_BYTES + PAGE_BYTES, len(content.data))
        content.write(bytes(max(end - position, 0)), position)

    def truncate(self, name: str, length: int) -> None:
        """Cut a file where it lies."""
        content = self._simulated(name)
        content.undo.clear()
        content.resize(length)

    # --- syncs that take time ---------------------------------------------------------------

    @contextmanager
    def deferring(self) -> Iterator[list[tuple[SimulatedContent, _Undo]]]:
        """Let syncs made within this block take effect only at `complete`.

        So a power loss can fall between the beginning of a sync and its end.
        """
        pending: list[tuple[SimulatedContent, _Undo]] = []
        self._deferred = pending
        try:
            yield pending
        finally:
            self._deferred = None

    @property
    def is_deferring(self) -> bool:
        """True within a `deferring` block."""
        return self._deferred is not None

    def defer(self, content: SimulatedContent) -> None:
        """Note that everything written to `content` so far is to become durable later."""
        assert self._deferred is not None
        self.settle()
        if content.undo:
            self._deferred.append((content, content.undo[-1]))

    def settle(self) -> None:
        """Let deferred syncs take effect before anything that comes after them.

        Whoever syncs waits for it: only the last sync of a block can still be under way.
        """
        if self._deferred:
            self.complete(self._deferred)
            self._deferred.clear()

    def complete(self, pending: list[tuple[SimulatedContent, _Undo]]) -> None:
        """Let the syncs of a `deferring` block take effect now."""
        for content, newest in pending:
            for position, undo in enumerate(content.undo):
                if undo is newest:
                    del content.undo[: position + 1]
                    break

    def names(self) -> list[str]:
        """Return the names of all files, in order."""
        return sorted(self._files)

    def length_of(self, name: str) -> int:
        """Return how much of a file has been written; what was only preallocated is not counted."""
        return len(self._existing(name).data)

    def used_bytes(self) -> int:
        """Return how long all files are together."""
        return self._used()

    # --- the port ---------------------------------------------------------------------------

    def create(self, name: str) -> SimulatedFile:
        self._check_new(name)
        content = SimulatedContent()
        self._files[name] = content
        self._unsynced_names.append(_NameChange(added=name, content=content))
        return SimulatedFile(self, content, name)

    def open(self, name: str) -> SimulatedFile:
        return SimulatedFile(self, self._simulated(name), name)

    def make_folder(self, folder: str) -> None:
        missing = []
        while folder and folder not in self._folders:
            missing.append(folder)
            folder = folder_of(folder)
        for one in reversed(missing):
            super().make_folder(one)
            # The port makes the name durable, and with it whatever was removed under that name.
            self._make_names_durable(folder_of(one))
            self._durable_folders.add(one)

    def rename(self, old: str, new: str) -> None:
        self.settle()
        super().rename(old, new)
        change = _NameChange(removed=old, added=new, content=self._simulated(new))
        self._unsynced_names.append(change)

    def remove(self, name: str) -> None:
        if name in self._files:
            super().remove(name)
            self._unsynced_names.append(_NameChange(removed=name))

    def remove_folder(self, folder: str) -> None:
        for name in self._within(folder):
            self.remove(name)
        if folder in self._folders:
            super().remove_folder(folder)
            self._unsynced_names.append(_NameChange(folder=folder))

    def sync_directory(self, folder: str) -> None:
        super().sync_directory(folder)
        self.settle()
        self.check_sync(None, folder)
        self._make_names_durable(folder)

    def _make_names_durable(self, folder: str) -> None:
        waiting: list[_NameChange] = []
        for change in self._unsynced_names:
            if not change.is_in(folder):
                waiting.append(change)
                continue
            change.apply(self._durable_files, self._durable_folders)
            if change.folder is not None:
                gone = change.folder
                waiting = [earlier for earlier in waiting if not earlier.is_below(gone)]
        self._unsynced_names = waiting

    def check_sync(self, content: SimulatedContent | None, name: str) -> None:
        """Raise `SyncFailed` if it is this sync's turn; the kernel has then dropped its pages."""
        if self._failing_syncs == 0:
            return
        self._failing_syncs -= 1
        if content is not None:
            content.lose_unsynced(self._rng)
        raise SyncFailed(f"sync of {name}: input/output error")

    def _simulated(self, name: str) -> SimulatedContent:
        content = self._existing(name)
        assert isinstance(content, SimulatedContent)
        return content


def _sectors(undo: _Undo) -> range:
    """Return the numbers of the sectors a write touched."""
    if undo.size == 0:
        return range(0)
    end = undo.position + undo.size
    return range(undo.position // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1)


def _steps_back(rng: random.Random, steps_max: int, survival: float) -> int:
    """Draw how many of the last writes are lost: each is, until the first that survives."""
    steps = 0
    while steps < steps_max and rng.random() >= survival:
        steps += 1
    return steps
