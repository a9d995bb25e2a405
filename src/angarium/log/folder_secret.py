"""What only processes on this data folder, or on a copy of it, know: 32 random bytes in a file.

It is told to nobody. Two processes that both say they are the same node can show each other with it
that one of them lives on a copy; whoever only says so cannot (`node.rivals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.log.disk import Disk

NAME: Final = "secret"
SECRET_BYTES: Final = 32


def load(disk: Disk, random_bytes: Callable[[int], bytes]) -> bytes:
    """Return the folder's secret, and draw one if it has none, or only part of one. Blocks."""
    try:
        file = disk.open(NAME)
    except FileNotFoundError:
        return _drawn(disk, random_bytes)
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    return content if len(content) == SECRET_BYTES else _drawn(disk, random_bytes)


def _drawn(disk: Disk, random_bytes: Callable[[int], bytes]) -> bytes:
    secret = random_bytes(SECRET_BYTES)
    replace_file(disk, NAME, secret)
    return secret
