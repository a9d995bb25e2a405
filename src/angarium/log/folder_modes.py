"""The mode of data folders: the user that the node runs as can read them, other users cannot.

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
    """Create a folder and its missing parents with mode 0700; existing ones keep their mode."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=private_opener)`; a new one is private."""
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


def shared_mode(folder: Path) -> int:
    """Return a folder's mode if other users than its owner may enter or read it; else 0.

    Files below a folder that they cannot enter are out of their reach, whatever modes they have.
    """
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return 0
    return mode if mode & _OTHERS else 0
