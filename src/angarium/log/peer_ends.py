"""How far the logs of other nodes were durable when they last said so, in a small file.

It is no part of what a node promises, so it is not written with every word: losing the newest of it
only means that a disk which goes back by a few seconds is not noticed by this node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData
from angarium.ids import ReplicaId
from angarium.log.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.log.disk import Disk

NAME: Final = "peers"

_TITLE: Final = "angarium peers 1"


def load(disk: Disk) -> dict[ReplicaId, int]:
    """Return what was saved, nothing if there is none; raises `CorruptData`."""
    try:
        file = disk.open(NAME)
    except FileNotFoundError:
        return {}
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    try:
        title, *rows, _ = content.decode("ascii").splitlines()
        pairs = (row.split() for row in rows)
        ends = {ReplicaId(int(replica)): int(end) for replica, end in pairs}
    except ValueError:
        title, ends = "", {}
    if title != _TITLE or _written(ends) != content:
        raise CorruptData(f"the file {NAME!r} is damaged")
    return ends


def save(disk: Disk, ends: Mapping[ReplicaId, int]) -> None:
    """Write it down, durably."""
    replace_file(disk, NAME, _written(ends))


def _written(ends: Mapping[ReplicaId, int]) -> bytes:
    rows = "".join(f"{replica} {end}\n" for replica, end in sorted(ends.items()))
    body = f"{_TITLE}\n{rows}".encode()
    return body + f"crc32c {crc32c_of_bytes(body):08x}\n".encode()
