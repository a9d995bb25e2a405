"""What a partition's segments cost: appending, reading in sequence, opening.

    python -m benchmarks.micro.segments [--format json] [--check] [--mib 1024] [--folder DIR]

The baselines are bare loops of the system calls underneath, over the same bytes, in the same run:
`pwrite` and `fdatasync`, and `pread` in chunks of the size that the log is asked for. Reads come
from the page cache, so that they measure us and not the disk. Rounds of both sides alternate and
the best of each counts, because other work on the machine can only slow a round down. `--check`
fails if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch, BatchBuilder, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.os_disk import OsDisk
from angarium.log.scrub import Scrub
from angarium.log.segments import PartitionLog, SegmentConfig

if TYPE_CHECKING:
    from collections.abc import Callable

MIB: Final = 1 << 20
READ_BYTES: Final = (512 << 10, MIB, 4 * MIB)
SYNC_BYTES: Final = 4 * MIB
ROUNDS: Final = 7
VALUE_BYTES: Final = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    """What the bare loop does, in the same unit."""
    target: str = ""
    is_missed: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.baseline is None else self.value / self.baseline


def main() -> int:
    """Print a table, or the same as JSON."""
    parser = argparse.ArgumentParser(description="Measure a partition's segments.")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--check", action="store_true", help="fail if a target is missed")
    parser.add_argument("--mib", type=int, default=1024, help="size of the log")
    parser.add_argument("--folder", type=Path, help="where to put it; a temporary folder if absent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = measure(Path(folder), options.mib * MIB)
    if options.format == "json":
        print(json.dumps([asdict(line) | {"ratio": line.ratio} for line in lines], indent=2))
    else:
        print_table(lines)
    return 1 if options.check and any(line.is_missed for line in lines) else 0


def measure(folder: Path, log_bytes: int) -> list[Line]:
    """Take every measurement, over logs of two sizes of batches."""
    lines = appends(folder, log_bytes // 4)
    disk = OsDisk(folder)
    for batch_bytes in (64 << 10, 4 << 10):
        label = f"{batch_bytes >> 10} KiB batches"
        size = log_bytes if batch_bytes == 64 << 10 else log_bytes // 4
        name = f"log-{batch_bytes}"
        fill(disk, name, size, batch_bytes)
        lines += reads(disk, folder, name, label)
        lines += openings(disk, name, label, size, batch_bytes)
    return lines


# --- appending ------------------------------------------------------------------------------


def appends(folder: Path, size: int) -> list[Line]:
    """Append and sync every few MiB, against a loop that writes the same buffers."""
    batches = numbered_batches(size // (64 << 10), 64 << 10)
    per_sync = SYNC_BYTES // (64 << 10)

    def ours(disk: OsDisk, name: str) -> None:
        log = PartitionLog.open(disk, name)
        for start in range(0, len(batches), per_sync):
            log.append(batches[start : start + per_sync])
            log.sync()
        log.close()

    def bare(disk: OsDisk, name: str) -> None:
        file = disk.create(name)
        position = 0
        for start in range(0, len(batches), per_sync):
            gathered = batches[start : start + per_sync]
            if position % (64 * MIB) == 0:
                file.preallocate(position + 64 * MIB)
            file.pwrite(gathered, position)
            file.datasync()
            position += sum(map(len, gathered))
        file.close()

    disk = OsDisk(folder)
    best = {"ours": 0.0, "bare": 0.0}
    for turn in range(3):
        for who, action in (("bare", bare), ("ours", ours)):
            started = time.perf_counter()
            action(disk, f"{who}-{turn}")
            best[who] = max(best[who], size / (time.perf_counter() - started) / MIB)
    log = PartitionLog.open(disk, "memory", SegmentConfig(unflushed_bytes_max=1 << 40))
    started = time.perf_counter()
    log.append(batches)
    micros = (time.perf_counter() - started) / len(batches) * 1e6
    return [
        Line("append + sync every 4 MiB, 64 KiB batches", best["ours"], "MiB/s", best["bare"]),
        Line("append alone, 64 KiB batches (µs each)", micros, "µs"),
    ]


# --- reading --------------------------------------------------------------------------------


def reads(disk: OsDisk, folder: Path, name: str, label: str) -> list[Line]:
    """Read the whole log in sequence, against bare reads of its files in chunks of one size."""
    log = PartitionLog.open(disk, name)
    total = log.manifest().total_bytes
    files = [
        (os.open(folder / name / f"{info.base_offset:020d}.seg", os.O_RDONLY), info.bytes)
        for info in log.manifest().segments
    ]

    def ours(chunk_bytes: int) -> None:
        offset = log.start_offset
        while batches := log.read(offset, chunk_bytes):
            offset = Batch.trusted(batches[-1]).next_offset
            del batches  # as the bare loop, which lets go of a chunk before it reads the next

    def bare(chunk_bytes: int) -> None:
        for descriptor, size in files:
            for position in range(0, size, chunk_bytes):
                os.pread(descriptor, min(chunk_bytes, size - position), position)

    def scrub(chunk_bytes: int) -> None:
        assert not any(Scrub(log, slice_bytes=chunk_bytes))

    lines = []
    for chunk_bytes in READ_BYTES:
        speeds = dict.fromkeys((bare, ours, scrub), 0.0)
        for _ in range(ROUNDS):
            for action in speeds:
                speed = total / seconds(partial(action, chunk_bytes)) / MIB
                speeds[action] = max(speeds[action], speed)
        what = f"by {chunk_bytes >> 10:,} KiB, {label}"
        aim = "≥ 70 %" if label.startswith("64") else ""
        is_slow = bool(aim) and speeds[ours] < 0.7 * speeds[bare]
        lines += [
            Line(f"sequential read {what}", speeds[ours], "MiB/s", speeds[bare], aim, is_slow),
            Line(f"scrub {what}", speeds[scrub], "MiB/s", speeds[bare]),
        ]
    for descriptor, _ in files:
        os.close(descriptor)
    log.close()
    return lines


# --- opening --------------------------------------------------------------------------------


def openings(disk: OsDisk, name: str, label: str, size: int, batch_bytes: int) -> list[Line]:
    """Open the log after a clean stop, and after the process that wrote it was killed."""
    clean = min(seconds(lambda: PartitionLog.open(disk, name).close()) for _ in range(3))
    kill_a_writer(disk, name, batch_bytes)
    started = time.perf_counter()
    log = PartitionLog.open(disk, name)
    killed = time.perf_counter() - started
    assert not log.damage
    scanned = log.scanned_bytes / MIB
    log.close()
    what = f"{size // MIB} MiB, {label}"
    return [
        Line(f"open after a clean stop, {what}", clean * 1e3, "ms", None, "< 1 s", clean >= 1),
        Line(
            f"open after a kill, {what} ({scanned:.0f} MiB active)",
            killed * 1e3,
            "ms",
            None,
            "< 5 s",
            killed >= 5,
        ),
    ]


def kill_a_writer(disk: OsDisk, name: str, batch_bytes: int) -> None:
    """Let a process append until the active segment is nearly full, then kill it."""
    child = os.fork()
    if child == 0:
        log = PartitionLog.open(disk, name)
        nearly_full = SegmentConfig().segment_bytes - 2 * MIB
        while log.manifest().segments[-1].bytes < nearly_full:
            log.append(numbered_batches(MIB // batch_bytes, batch_bytes, start=log.end_offset))
            flush = log.take(sync=False)
            assert flush is not None
            log.write(flush)
            log.flushed(flush)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


# --- the means ------------------------------------------------------------------------------


def fill(disk: OsDisk, name: str, size: int, batch_bytes: int) -> None:
    """Write a log of about `size` bytes."""
    log = PartitionLog.open(disk, name)
    while log.end_offset == 0 or log.manifest().total_bytes < size:
        log.append(numbered_batches(16 * MIB // batch_bytes, batch_bytes, start=log.end_offset))
        log.sync()
    log.close()


def numbered_batches(count: int, batch_bytes: int, *, start: int = 0) -> list[bytes]:
    """Return `count` stamped batches of about `batch_bytes` each."""
    builder = BatchBuilder()
    for place in range(max(1, (batch_bytes - 136) // (VALUE_BYTES + 4))):
        builder.add((b"%d" % place).ljust(VALUE_BYTES, b"."))
    template = bytearray(builder.build())
    records = Batch.trusted(template).count
    batches = []
    for place in range(count):
        offset = start + place * records
        stamp(template, base_offset=Offset(offset), term=Term(1), append_time=Micros(offset + 1))
        batches.append(bytes(template))
    return batches


def seconds(action: Callable[[], object]) -> float:
    """Return how long `action` takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def print_table(lines: list[Line]) -> None:
    """Print the lines, one below the other."""
    print(f"{'':58} {'ours':>9} {'bare':>9}        {'ratio':>6}  target")
    for line in lines:
        bare = "" if line.baseline is None else f"{line.baseline:9,.0f}"
        ratio = "" if line.ratio is None else f"{line.ratio:6.0%}"
        verdict = "MISSED" if line.is_missed else ""
        print(
            f"{line.name:58} {line.value:9,.1f} {bare:>9} {line.unit:6} {ratio:>6}"
            f"  {line.target} {verdict}".rstrip()
        )


if __name__ == "__main__":
    sys.exit(main())
