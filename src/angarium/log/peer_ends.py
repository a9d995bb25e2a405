"""How far the logs of other nodes were durable when they last said so, in a small file.

It is a hint and no part of what a node promises: losing the newest of it only means that a disk
which goes back by that much is not noticed by this node. A save that fails is logged and tried
again; the node goes on.

The file has two slots of equal length, which are written in turns and in place: a power cut may
damage one of them, and the other stays whole. Its length stays, no name changes, and the file stays
open. So saving is one write and one fdatasync of a block that is allocated already. It costs no
commit of the file system's journal, which the syncs of the log would wait for, and needs neither
room on the disk nor another descriptor (`benchmarks.micro.saving_marks`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData
from angarium.ids import ReplicaId
from angarium.log.disk import read_file, replacing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.log.disk import Disk, File

NAME: Final = "marks"

EARLIER_NAME: Final = "peers"
"""What earlier releases have written every ten seconds; read as long as there is no newer file."""

SLOT_BYTES: Final = 4_096
"""The least length of a slot, some hundred nodes; always a multiple of it."""

_TITLE: Final = "angarium marks 1"
_EARLIER_TITLE: Final = "angarium peers 1"


class PeerEnds:
    """The file of one node."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: File | None = None
        self._slot_bytes = 0
        self._saved = 0
        """How often it was saved, in all lives of the node: the number of the newest slot."""

    def load(self) -> dict[ReplicaId, int]:
        """Return what was saved, nothing if there is none; raises `CorruptData`."""
        content = read_file(self._disk, NAME)
        if content is None:
            return _earlier(read_file(self._disk, EARLIER_NAME))
        half = len(content) // 2
        slots = [found for one in (content[:half], content[half:]) if (found := _read(one))]
        if not slots:
            raise CorruptData(f"the file {NAME!r} is damaged")
        self._saved, ends = max(slots, key=lambda one: one[0])
        return ends

    def save(self, ends: Mapping[ReplicaId, int]) -> None:
        """Persist `ends`: they are synced when this returns. Blocks."""
        number = self._saved + 1
        content = _written(number, ends)
        try:
            if self._file is None or len(content) > self._slot_bytes:
                self._open(number, content)
            else:
                slot = content.ljust(self._slot_bytes, b"\0")
                self._file.pwrite([slot], number % 2 * self._slot_bytes)
                self._file.datasync()
        except BaseException:
            self.close()
            raise
        self._saved = number

    def close(self) -> None:
        """Close the file; `save` opens it again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self, number: int, content: bytes) -> None:
        """Replace the file by one with room for twice as much, and keep it open."""
        self.close()
        self._slot_bytes = -(-2 * len(content) // SLOT_BYTES) * SLOT_BYTES
        slots = [bytes(self._slot_bytes)] * 2
        slots[number % 2] = content.ljust(self._slot_bytes, b"\0")
        with replacing(self._disk, NAME) as file:
            file.pwrite(slots, 0)
        self._file = self._disk.open(NAME)


def _read(slot: bytes) -> tuple[int, dict[ReplicaId, int]] | None:
    """Return the number and the content of a slot, or None if it is not whole."""
    with suppress(ValueError):
        head, *rows, _ = slot.partition(b"\0")[0].decode("ascii").splitlines()
        number = int(head.removeprefix(_TITLE))
        ends = _pairs(rows)
        if _written(number, ends) == slot.rstrip(b"\0"):
            return number, ends
    return None


def _written(number: int, ends: Mapping[ReplicaId, int]) -> bytes:
    return _checked(f"{_TITLE} {number}", ends)


def _checked(title: str, ends: Mapping[ReplicaId, int]) -> bytes:
    rows = "".join(f"{replica} {end}\n" for replica, end in sorted(ends.items()))
    body = f"{title}\n{rows}".encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()


def _pairs(rows: list[str]) -> dict[ReplicaId, int]:
    pairs = (row.split() for row in rows)
    return {ReplicaId(int(replica)): int(end) for replica, end in pairs}


def _earlier(content: bytes | None) -> dict[ReplicaId, int]:
    """Return what an earlier release has saved; nothing if it is damaged, for it is old."""
    if content is None:
        return {}
    with suppress(ValueError):
        title, *rows, _ = content.decode("ascii").splitlines()
        ends = _pairs(rows)
        if title == _EARLIER_TITLE and _checked(title, ends) == content:
            return ends
    return {}
