"""What the nodes use, as the kernel counts it: processor, memory, disk."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LISTENING: Final = "0A"
"""A socket's state in /proc/net/tcp."""
_WAITED: Final = "voluntary_ctxt_switches"
"""The line of a thread's status that counts how often it began to wait."""


class Watched(msgspec.Struct, frozen=True):
    """A process to look at, and the folder it writes to if that is known."""

    pid: int
    data: Path | None = None


class Usage(msgspec.Struct, frozen=True):
    """What one process had used up to a moment."""

    cpu_s: float
    wakeups: int
    """How often one of its threads that had nothing to do was given something."""
    memory_bytes: int
    disk_bytes: int | None


def usage(watched: Watched) -> Usage | None:
    """Return what a process uses; None if it is gone, or not ours to look at."""
    try:
        stat = Path(f"/proc/{watched.pid}/stat").read_text(encoding="ascii", errors="replace")
        statm = Path(f"/proc/{watched.pid}/statm").read_text(encoding="ascii")
    except OSError:
        return None
    # The second field is the program's name and may hold anything, so count from its end.
    fields = stat.rpartition(")")[2].split()
    return Usage(
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        wakeups=_wakeups(watched.pid),
        memory_bytes=int(statm.split()[1]) * _PAGE,
        disk_bytes=None if watched.data is None else disk_bytes(watched.data),
    )


def own_usage() -> tuple[float, int]:
    """Return the processor time that this process has used, in seconds, and its wake-ups."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_nvcsw


def _wakeups(pid: int) -> int:
    """Return how often the threads of a process gave their processor up by themselves."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):  # a thread that ended meanwhile
            lines = status.read_text(encoding="ascii", errors="replace").splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith(_WAITED))
    return total


def disk_bytes(folder: Path) -> int:
    """Return the bytes that the files below `folder` take, preallocated ones included."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:
            continue  # removed while we looked
    return total


def listeners(ports: Iterable[int]) -> list[Watched]:
    """Return the processes of this machine that listen on `ports`, where they can be told."""
    sockets = _listening_sockets(set(ports))
    if not sockets:
        return []
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        links = _open_files(process)
        if any(link in sockets for link in links):
            found.append(Watched(int(process.name), _data_folder(links)))
    return found


def _listening_sockets(ports: set[int]) -> set[str]:
    """Return how the listening sockets of `ports` are called among a process's open files."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) in ports:
                found.add(f"socket:[{fields[9]}]")
    return found


def _open_files(process: Path) -> list[str]:
    found = []
    try:
        for link in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                found.append(str(link.readlink()))
    except OSError:
        return []  # gone, or somebody else's
    return found


def _data_folder(links: Sequence[str]) -> Path | None:
    """Return the folder a node writes to: the one that its open write-ahead log lies in."""
    return next(
        (path.parent.parent for path in map(Path, links) if path.parent.name == "wal"), None
    )
