"""A mark beside the log that says how many logs were begun on this disk; usually one.

If this file is there and the log is not, the log was lost. Without the file, a node whose log was
deleted would look like a new one. The file numbers of the next log start far above those of the
lost one: other nodes remember how far a log was durable, and would take one that ends earlier for
an older copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

NAME: Final = "begun"

FILES_MAX: Final = 1 << 20
"""More files than one log fills in its life: 64 TiB of the default size."""

_WORDS: Final = "angarium log "


def is_marked(disk: Disk) -> bool:
    """Tell whether there was a log here."""
    return disk.exists(NAME)


def mark(disk: Disk) -> None:
    """Say that there is a log, durably. Blocks."""
    if not disk.exists(NAME):
        _save(disk, 1)


def sequence_after_loss(disk: Disk) -> int:
    """Count a log more, durably; return the sequence number behind which its files begin."""
    count = _count(disk)
    _save(disk, count + 1)
    return count * FILES_MAX


def _save(disk: Disk, count: int) -> None:
    replace_file(disk, NAME, f"{_WORDS}{count}\n".encode())


def _count(disk: Disk) -> int:
    file = disk.open(NAME)
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    told = content.decode("ascii", "replace").removeprefix(_WORDS).strip()
    return max(int(told), 1) if told.isdecimal() else 1
