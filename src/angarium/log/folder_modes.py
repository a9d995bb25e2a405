"""Who may read a data folder: the user of its node, and no other user of the machine.

Records, hashes of passwords and join tokens lie there. Folders and files are made private from
their first byte on, whatever the umask. What an earlier release made, or an administrator shares
on purpose, keeps its mode: `angarium cluster upgrade-check` has a note of it.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: Path) -> None:
    """Make a folder and what is missing above it; one that is there keeps its mode."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=private_opener)`; a new one is private."""
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


def shared_mode(folder: Path) -> int:
    """Return the mode of a folder that others than its owner may enter or read; 0 of another.

    Files below a folder that they cannot enter are out of their reach, whatever modes they have.
    """
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return 0
    return mode if mode & _OTHERS else 0
