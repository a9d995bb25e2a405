"""How long syncs of a log take while a partition's files are deleted on the same disk.

    python -m benchmarks.micro.deleting [--mb 1500] [--rounds 3] [--folder DIR]

At once, as `rm -r` does it, and as a node does, in turns. A small file is written and synced all
the time, as a log is; what counts is how long the slowest of its syncs took.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from angarium.cli.output import print_table
from angarium.log.os_disk import OsDisk

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENT_MB = 64
QUIET_S = 1.0
AFTER_S = 3.0
PAUSE_S = 0.002


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=1_500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="a folder on a disk, not tmpfs, or syncs cost nothing")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as root:
        disk = OsDisk(Path(root), pause=time.sleep)
        for _ in range(options.rounds):
            rows.append(
                ("at once", *measured(disk, options.mb, lambda: shutil.rmtree(disk.root / "gone")))
            )
            rows.append(
                ("as a node", *measured(disk, options.mb, lambda: disk.remove_folder("gone")))
            )
    heads = ("", "took, s", "p99 of a sync before, ms", "p99 meanwhile, ms", "longest, ms")
    print_table(heads, rows, none="no rounds")


def measured(disk: OsDisk, megabytes: int, delete: Callable[[], None]) -> tuple[str, ...]:
    """Fill a folder, delete it while a log is synced, and return what that took."""
    disk.make_folder("gone")
    for number in range(megabytes // SEGMENT_MB):
        file = disk.create(f"gone/{number}")
        for at in range(SEGMENT_MB):
            file.pwrite([bytes(1 << 20)], at << 20)
        file.datasync()
        file.close()
    took: list[float] = []
    is_over = threading.Event()
    log = threading.Thread(target=synced, args=(disk, is_over, took))
    log.start()
    time.sleep(QUIET_S)
    quiet, began = len(took), time.perf_counter()
    delete()
    seconds = time.perf_counter() - began
    time.sleep(AFTER_S)
    is_over.set()
    log.join()
    before, meanwhile = sorted(took[:quiet]), sorted(took[quiet:])
    figures = (
        before[len(before) * 99 // 100],
        meanwhile[len(meanwhile) * 99 // 100],
        meanwhile[-1],
    )
    return (f"{seconds:.2f}", *(f"{one * 1e3:.1f}" for one in figures))


def synced(disk: OsDisk, is_over: threading.Event, took: list[float]) -> None:
    """Write and sync a few bytes until it is over."""
    file = disk.create("log")
    position = 0
    while not is_over.is_set():
        began = time.perf_counter()
        file.pwrite([bytes(100)], position)
        file.datasync()
        took.append(time.perf_counter() - began)
        position += 100
        time.sleep(PAUSE_S)
    file.close()
    disk.remove("log")


if __name__ == "__main__":
    main()
