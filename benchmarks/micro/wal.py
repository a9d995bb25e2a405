"""What the write-ahead log costs: appending with a sync, many groups, the processor, opening.

    python -m benchmarks.micro.wal [--format json] [--check] [--mib 1024] [--folder DIR]

The baselines are bare loops of `pwrite` and `fdatasync` over the same bytes in the same run. One
writes to files of 64 MiB preallocated by `posix_fallocate`, as the log does; the other to a file
that grows. Short rounds of all sides alternate and the median of each counts, because a disk's
syncs vary. Opening reads from the page cache, except where it says cold. `--check` fails if a
target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.ids import Incarnation, Index, RaftGroupId, Term
from angarium.log.memory_disk import MemoryDisk, MemoryFile
from angarium.log.os_disk import OsDisk
from angarium.log.wal import Wal, WalConfig
from angarium.raft.messages import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import Buffer

MIB: Final = 1 << 20
FILE_BYTES: Final = 64 * MIB
ROUNDS: Final = 200
SYNCS: Final = 4
"""Per round."""
INCARNATION: Final = Incarnation(1)
ONE: Final = RaftGroupId(1)
GROUPS: Final = 100
NOISE: Final = os.urandom(MIB)


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    target: str = ""
    is_missed: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.baseline is None else self.value / self.baseline


def main() -> int:
    """Print a table, or the same as JSON."""
    parser = argparse.ArgumentParser(description="Measure the write-ahead log.")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--check", action="store_true", help="fail if a target is missed")
    parser.add_argument("--mib", type=int, default=1024, help="length of the log to open")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder if absent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        root = Path(folder)
        lines = [*appending(root), *many_groups(root), *processor(), *opening(root, options.mib)]
    if options.format == "json":
        print(json.dumps([{**asdict(line), "ratio": line.ratio} for line in lines], indent=2))
    else:
        for line in lines:
            beside = "" if line.ratio is None else f"{line.ratio:6.0%} of {line.baseline:.4g}"
            missed = "  MISSED" if line.is_missed else ""
            print(
                f"{line.name:<58}{line.value:>9.4g} {line.unit:<9}{beside:<20}{line.target}{missed}"
            )
    return 1 if options.check and any(line.is_missed for line in lines) else 0


def alternate(sides: Sequence[Callable[[], None]], rounds: int = ROUNDS) -> list[float]:
    """Return the median seconds of a round of each side."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, seconds in zip(sides, times, strict=True):
            started = time.perf_counter()
            side()
            seconds.append(time.perf_counter() - started)
    return [statistics.median(seconds) for seconds in times]


# --- one group, a batch per sync --------------------------------------------------------------


def appending(root: Path) -> list[Line]:
    """Append and sync, beside the bare system calls."""
    lines = []
    for size, target in ((64 * 1024, 0.8), (4 * 1024, None)):
        sides = [
            Appender(root / f"append-{size}", size=size).run,
            BareLoop(root / f"ready-{size}", size=size, preallocate=True).run,
            BareLoop(root / f"grown-{size}", size=size, preallocate=False).run,
        ]
        per_second, ready, grown = (SYNCS / seconds for seconds in alternate(sides))
        name = f"append + sync of {size // 1024} KiB, beside"
        missed = target is not None and per_second / ready < target
        told = "" if target is None else f"at least {target:.0%}"
        lines += [
            Line(f"{name} preallocated", per_second, "per s", ready, told, missed),
            Line(f"{name} growing", per_second, "per s", grown),
        ]
    return lines


class Appender:
    """One group in a log of its own."""

    def __init__(self, folder: Path, *, size: int) -> None:
        self._wal = Wal.open(OsDisk(folder), incarnation=INCARNATION)
        self._wal.add_group(ONE)
        self._wal.sync()
        self._data = NOISE[:size]
        self._index = 0

    def run(self) -> None:
        for _ in range(SYNCS):
            self._index += 1
            self._wal.append(ONE, [Entry(Term(1), Index(self._index), self._data)])
            self._wal.sync()


class BareLoop:
    """The least that durable appends cost."""

    def __init__(self, folder: Path, *, size: int, preallocate: bool) -> None:
        folder.mkdir()
        self._folder = folder
        self._data = NOISE[:size]
        self._preallocate = preallocate
        self._files = 0
        self._begin()

    def _begin(self) -> None:
        self._files += 1
        path = self._folder / str(self._files)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._position = 0
        if self._preallocate:
            os.posix_fallocate(self._file, 0, FILE_BYTES)
            os.fdatasync(self._file)

    def run(self) -> None:
        for _ in range(SYNCS):
            if self._position + len(self._data) > FILE_BYTES:
                os.close(self._file)
                self._begin()
            os.pwrite(self._file, self._data, self._position)
            os.fdatasync(self._file)
            self._position += len(self._data)


# --- many groups ------------------------------------------------------------------------------


def many_groups(root: Path) -> list[Line]:
    """100 appends of 16 KiB per sync: in one group, and in a hundred."""
    one = RoundRobin(root / "one", groups=1)
    many = RoundRobin(root / "many", groups=GROUPS)
    seconds_one, seconds_many = alternate([one.run, many.run], rounds=50)
    per_round = RoundRobin.SYNCS * RoundRobin.APPENDS
    value, baseline = per_round / seconds_many, per_round / seconds_one
    return [
        Line("100 appends of 16 KiB per sync, one group", baseline, "per s"),
        Line(
            f"100 appends of 16 KiB per sync, {GROUPS} groups, beside one",
            value,
            "per s",
            baseline,
            "at least 70%",
            value / baseline < 0.7,
        ),
    ]


class RoundRobin:
    """Groups that take turns in one log."""

    APPENDS: Final = 100
    SYNCS: Final = 1

    def __init__(self, folder: Path, *, groups: int) -> None:
        self._wal = Wal.open(OsDisk(folder), incarnation=INCARNATION)
        self._groups = [RaftGroupId(number) for number in range(1, groups + 1)]
        for group in self._groups:
            self._wal.add_group(group)
        self._wal.sync()
        self._data = NOISE[: 16 * 1024]
        self._indexes = dict.fromkeys(self._groups, 0)

    def run(self) -> None:
        for _ in range(self.SYNCS):
            for turn in range(self.APPENDS):
                group = self._groups[turn % len(self._groups)]
                index = self._indexes[group] = self._indexes[group] + 1
                self._wal.append(group, [Entry(Term(1), Index(index), self._data)])
            self._wal.sync()


# --- the processor ----------------------------------------------------------------------------


class Nowhere(MemoryFile):
    """A file that takes everything at once and keeps nothing."""

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        pass


class NowhereDisk(MemoryDisk):
    """A disk of such files."""

    def create(self, name: str) -> Nowhere:
        super().create(name)
        return Nowhere(self, self._files[name], name)


def processor() -> list[Line]:
    """What an entry of 100 bytes costs without any disk."""
    lines = []
    for together in (1, 64):
        seconds = min(small_appends(together) for _ in range(3))
        name = f"processor time per entry of 100 bytes, {together} per append, 1024 per sync"
        micros = seconds * 1e6
        lines.append(Line(name, micros, "µs", None, "at most 4", micros > 4))
    return lines


def small_appends(together: int) -> float:
    """Return the seconds of processor time per entry."""
    wal = Wal.open(NowhereDisk(), incarnation=INCARNATION)
    wal.add_group(ONE)
    count = 64 * 1024
    data = NOISE[:100]
    entries = [Entry(Term(1), Index(index), data) for index in range(1, count + 1)]
    appends = [entries[start : start + together] for start in range(0, count, together)]
    started = time.process_time()
    for number, one in enumerate(appends):
        wal.append(ONE, one)
        if number * together % 1024 == 0:
            wal.sync()
    wal.sync()
    return (time.process_time() - started) / count


# --- opening ----------------------------------------------------------------------------------


def opening(root: Path, mib: int) -> list[Line]:
    """Open a long log after a kill and after a clean stop."""
    lines = []
    for size in (16 * 1024, 1024):
        folder = root / f"open-{size}"
        write_and_die(folder, mib * MIB, size)
        name = f"opening {mib} MiB of {size // 1024} KiB entries after"
        is_gib = size == 16 * 1024
        killed = seconds_to_open(folder)
        Wal.open(OsDisk(folder), incarnation=INCARNATION).close()
        clean = seconds_to_open(folder)
        lines += [
            Line(
                f"{name} a kill",
                killed,
                "s",
                None,
                "below 5" if is_gib else "",
                is_gib and killed >= 5,
            ),
            Line(
                f"{name} a clean stop",
                clean,
                "s",
                None,
                "below 1" if is_gib else "",
                is_gib and clean >= 1,
            ),
        ]
        if is_gib:
            drop_pages(folder)
            lines.append(Line(f"{name} a kill, cold", seconds_to_open(folder), "s"))
    return lines


def write_and_die(folder: Path, length: int, size: int) -> None:
    """Fill a log in a process of its own, and kill that."""
    child = os.fork()
    if child == 0:
        wal = Wal.open(OsDisk(folder), incarnation=INCARNATION, config=WalConfig(cache_bytes=0))
        wal.add_group(ONE)
        data = NOISE[:size]
        together = MIB // size
        for first in range(1, length // size + 1, together):
            entries = [Entry(Term(1), Index(first + n), data) for n in range(together)]
            wal.append(ONE, entries)
            wal.sync()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def seconds_to_open(folder: Path) -> float:
    started = time.perf_counter()
    wal = Wal.open(OsDisk(folder), incarnation=INCARNATION)
    seconds = time.perf_counter() - started
    assert wal.recovered.groups[ONE].damage is None
    return seconds


def drop_pages(folder: Path) -> None:
    """Ask the system to forget what it keeps in memory of the files."""
    for path in (folder / "wal").iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fdatasync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


if __name__ == "__main__":
    sys.exit(main())
