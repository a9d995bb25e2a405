"""The highest feature level at which a data directory has been written.

A cluster that has raised its level may write entries and formats that older releases do not know.
The mark stops such a release at the door, before it takes for damage what it only cannot read.
It is made durable before anything is written at the level; a directory without one is of level 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData
from angarium.log.disk import read_file, replace_file

if TYPE_CHECKING:
    from angarium.log.disk import Disk

LEVEL_NAME: Final = "level"
FIRST_LEVEL: Final = 1

_TITLE: Final = "angarium level "


def load(disk: Disk) -> int:
    """Return the level marked on `disk`; raises `CorruptData`."""
    content = read_file(disk, LEVEL_NAME)
    if content is None:
        return FIRST_LEVEL
    line = content.decode("ascii", "replace").partition("\n")[0]
    number = line.removeprefix(_TITLE)
    level = int(number) if number.isdecimal() else 0
    if _written(level) != content:
        raise CorruptData(
            f"the file {LEVEL_NAME!r} is damaged: remove it, if this release is not older than "
            "any that has run on this data directory"
        )
    return level


def save(disk: Disk, level: int) -> None:
    """Mark `disk` as written at `level` from here on, durably."""
    assert level >= FIRST_LEVEL, "levels begin at 1"
    replace_file(disk, LEVEL_NAME, _written(level))


def _written(level: int) -> bytes:
    body = f"{_TITLE}{level}\n".encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()
