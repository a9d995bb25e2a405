"""That this data folder is an older copy of itself, in a file that outlives the process.

The other nodes know it by where the log ends, and a log grows: a supervisor that starts the node
again and again would bring it past that end sooner or later, and what it has lost would be lost for
good. So the folder says it itself. The file goes with the folder: an emptied one, or the newest one
put back, does not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.log.disk import read_file, replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

NAME: Final = "rolled-back"


def note(disk: Disk, why: str) -> None:
    """Write down, durably, that the others have refused this folder. Blocks."""
    replace_file(disk, NAME, f"{why}\n".encode())


def noted(disk: Disk) -> str | None:
    """Return why this folder was refused, or None. Blocks."""
    content = read_file(disk, NAME)
    return None if content is None else content.decode("utf-8", "replace").strip()
