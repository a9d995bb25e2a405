"""Each group's newest snapshot, in a file that is whole or not there.

A snapshot is written under another name and renamed when every byte of it is durable; the one
before is removed only after that. Every byte is under a checksum. A snapshot that cannot be read
is an error, never an absence: an empty state taken for the truth would throw a log away.

Saving may be done in slices (`begin`), so that a large state never holds up a loop for long.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.batch.checksum import crc32c, crc32c_of_bytes, extend
from angarium.errors import CorruptData
from angarium.ids import Index, RaftGroupId, Term
from angarium.raft.messages import ConfState, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.log.disk import Disk, File

SLICE_BYTES: Final = 1 << 20
"""Bytes written at a time; at half a gigabyte per second, two milliseconds."""

_MAGIC: Final = b"ANGSNAP1"
_HEAD: Final = struct.Struct("<8sqqqQIII")
"""Magic, group, index, term, length of the data, length of the membership, checksum of membership
and data, checksum of what precedes."""
_CRC_START: Final = _HEAD.size - 4
# Made on import: msgspec crashes where two threads are the first to decode a type.
_decode_members: Final = msgspec.msgpack.Decoder(ConfState).decode
_SUFFIX: Final = ".snapshot"
_DRAFT: Final = ".draft"


class SnapshotWriter:
    """A snapshot on its way to disk. `step` until it says that the snapshot is saved."""

    def __init__(self, store: SnapshotStore, group: RaftGroupId, snapshot: Snapshot) -> None:
        self.group: Final = group
        self.snapshot: Final = snapshot
        self._store = store
        self._members = msgspec.msgpack.encode(snapshot.conf_state)
        self._data = memoryview(snapshot.data)
        self._crc = crc32c(self._members)
        self._position = 0
        self._file: File | None = None
        self.is_saved = False

    def step(self) -> bool:
        """Write one slice, or at the end make the whole durable; True when it is saved.

        The last step waits for the disk. Raises `DiskFull`, after which the old snapshot is
        still the newest and a new writer may try again.
        """
        if self.is_saved:
            return True
        if self._file is None:
            self._file = self._store.draft(self.group)
        if self._position < len(self._data):
            self._write_slice(self._file)
        else:
            # The head is written last, with the checksum over everything: a draft without one is
            # no snapshot.
            self._write_head(self._file)
            self._store.publish(self.group, self.snapshot.index)
            self.is_saved = True
        return self.is_saved

    def abandon(self) -> None:
        """Give up; the snapshot before stays the newest."""
        if self._file is not None and not self.is_saved:
            self._file.close()
            self._store.discard_draft(self.group)

    def _write_slice(self, file: File) -> None:
        piece = bytes(self._data[self._position : self._position + SLICE_BYTES])
        file.pwrite([piece], self._start + self._position)
        self._crc = extend(self._crc, piece)
        self._position += len(piece)

    def _write_head(self, file: File) -> None:
        snapshot = self.snapshot
        head = _HEAD.pack(
            _MAGIC,
            self.group,
            snapshot.index,
            snapshot.term,
            len(self._data),
            len(self._members),
            self._crc,
            0,
        )[:_CRC_START]
        file.pwrite([head, crc32c_of_bytes(head).to_bytes(4, "little"), self._members], 0)
        file.datasync()
        file.close()

    @property
    def _start(self) -> int:
        return _HEAD.size + len(self._members)


class SnapshotStore:
    """The snapshots of every group on a node, in one folder."""

    def __init__(self, disk: Disk, folder: str = "snapshots") -> None:
        self._disk = disk
        self._folder = folder
        disk.make_folder(folder)

    def begin(self, group: RaftGroupId, snapshot: Snapshot) -> SnapshotWriter:
        """Start saving `snapshot` in slices. One writer per group at a time."""
        return SnapshotWriter(self, group, snapshot)

    def save(self, group: RaftGroupId, snapshot: Snapshot) -> None:
        """Make `snapshot` the newest of `group`, durably, and remove the ones before it."""
        writer = self.begin(group, snapshot)
        try:
            while not writer.step():
                pass
        except BaseException:
            writer.abandon()
            raise

    def load(self, group: RaftGroupId) -> Snapshot | None:
        """Return the newest snapshot of `group`; None only if none was ever saved.

        `CorruptData` if it is damaged. `load_intact` may still find an older one, which stands
        for the group only if the write-ahead log reaches back to it.
        """
        indexes = self._indexes(group)
        return self._read(group, indexes[-1]) if indexes else None

    def load_intact(self, group: RaftGroupId) -> Snapshot | None:
        """Return the newest snapshot of `group` that is whole, passing over damaged ones."""
        for index in reversed(self._indexes(group)):
            try:
                return self._read(group, index)
            except CorruptData:
                continue
        return None

    def list(self) -> dict[RaftGroupId, Index]:
        """Return the groups that have a snapshot, each with the index of its newest."""
        found: dict[RaftGroupId, Index] = {}
        for group, index in self._names():
            found[group] = max(index, found.get(group, index))
        return found

    def remove(self, group: RaftGroupId) -> None:
        """Remove every snapshot of `group`, which has left this node."""
        self.discard_draft(group)
        self._remove_below(group, Index(1 << 62))

    # --- for the writer ---------------------------------------------------------------------

    def draft(self, group: RaftGroupId) -> File:
        """Return an empty file to write the next snapshot of `group` to."""
        self.discard_draft(group)
        return self._disk.create(self._draft_name(group))

    def discard_draft(self, group: RaftGroupId) -> None:
        """Remove what an unfinished writer left."""
        self._disk.remove(self._draft_name(group))

    def publish(self, group: RaftGroupId, index: Index) -> None:
        """Make the draft, which is durable, the newest snapshot; then remove the ones before."""
        # The draft is synced before it gets its name, and the name before the older snapshot goes:
        # at any moment there is one that is whole. Planted as snapshot-not-synced.
        self._disk.rename(self._draft_name(group), self._name(group, index))
        self._disk.sync_directory(self._folder)
        self._remove_below(group, index)

    def _remove_below(self, group: RaftGroupId, index: Index) -> None:
        for older in self._indexes(group):
            if older < index:
                self._disk.remove(self._name(group, older))

    # --- reading ----------------------------------------------------------------------------

    def _read(self, group: RaftGroupId, index: Index) -> Snapshot:
        file = self._disk.open(self._name(group, index))
        try:
            content = file.pread(file.size(), 0)
        finally:
            file.close()
        try:
            return _decoded(content, group, index)
        except (ValueError, struct.error, msgspec.MsgspecError) as error:
            raise CorruptData(
                f"the snapshot of group {group} at index {index} is damaged: {error}"
            ) from error

    def _indexes(self, group: RaftGroupId) -> tuple[Index, ...]:
        return tuple(sorted(index for owner, index in self._names() if owner == group))

    def _names(self) -> Iterator[tuple[RaftGroupId, Index]]:
        for name in self._disk.list(self._folder):
            group, _, index = name.removesuffix(_SUFFIX).partition("-")
            if name.endswith(_SUFFIX) and group.isdecimal() and index.isdecimal():
                yield RaftGroupId(int(group)), Index(int(index))

    def _name(self, group: RaftGroupId, index: Index) -> str:
        return f"{self._folder}/{group}-{index:020d}{_SUFFIX}"

    def _draft_name(self, group: RaftGroupId) -> str:
        return f"{self._folder}/{group}{_DRAFT}"


def _decoded(content: bytes, group: RaftGroupId, index: Index) -> Snapshot:
    magic, owner, at, term, data_bytes, members_bytes, crc, head_crc = _HEAD.unpack_from(content)
    if magic != _MAGIC or crc32c_of_bytes(content[:_CRC_START]) != head_crc:
        raise ValueError("its head fails the checksum")
    # A file that was renamed or copied is whole and says the wrong thing.
    if (owner, at) != (group, index):
        raise ValueError(f"it belongs to group {owner}, index {at}")
    if len(content) != _HEAD.size + members_bytes + data_bytes:
        raise ValueError("it has another length than it says")
    if crc32c_of_bytes(content[_HEAD.size :]) != crc:
        raise ValueError("its contents fail the checksum")
    start = _HEAD.size + members_bytes
    members = _decode_members(content[_HEAD.size : start])
    return Snapshot(at, Term(term), members, content[start:])
