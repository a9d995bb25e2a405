"""What a compaction costs: how fast it goes, what is left, and how long it holds others up.

    python -m benchmarks.micro.compaction [--records 1000000] [--keys 20000] [--format json]

Records of 100 bytes in batches of 500, keys at random. Work that blocks is done in a thread, as a
node does it, while the main thread stands in for the event loop: it sleeps a millisecond at a time
and notes how much longer it slept. The baseline of the pauses is the same loop with nothing beside.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.batch import encode, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.os_disk import OsDisk
from angarium.log.segments import PartitionLog
from angarium.log.segments.compacted_mark import Pass

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_RECORDS: Final = 500
VALUE: Final = b"x" * 100
SWITCH_INTERVAL_S: Final = 0.0005
"""As a node sets it."""


def main() -> int:
    """Fill a log, compact it, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measured(Path(folder), options.records, options.keys)
    if options.format == "json":
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:<44} {value:14,.2f}")
    return 0


def measured(folder: Path, records: int, keys: int) -> dict[str, float]:
    """Return the figures."""
    log = PartitionLog.open(OsDisk(folder), "p")
    _fill(log, records, keys)
    log.close_segment(log.end_offset)
    log.sync()
    before = sum(segment.bytes for segment in log.segments)
    idle = max(_lags(lambda: time.sleep(1.0)))
    goal = Pass(log.end_offset)
    lags: list[float] = []
    started = time.perf_counter()
    while log.compactor.is_behind(goal):
        turn = log.compactor.turn(goal, limit=log.synced_offset)
        for work in turn:
            lags += _lags(work)
    took = time.perf_counter() - started
    left = sum(segment.records for segment in log.segments)
    lags.sort()
    return {
        "records": float(records),
        "records left": float(left),
        "MiB before": before / (1 << 20),
        "MiB after": sum(segment.bytes for segment in log.segments) / (1 << 20),
        "seconds": took,
        "records per second": records / took,
        "the loop's longest pause meanwhile, ms": lags[-1] * 1e3,
        "99 of 100 pauses are below, ms": lags[len(lags) * 99 // 100] * 1e3,
        "longest pause with nothing beside, ms": idle * 1e3,
    }


def _fill(log: PartitionLog, records: int, keys: int) -> None:
    rng = random.Random(1)
    names = [b"key %8d" % number for number in range(keys)]
    for base in range(0, records, BATCH_RECORDS):
        batch = encode([VALUE] * BATCH_RECORDS, keys=rng.choices(names, k=BATCH_RECORDS))
        stamp(batch, base_offset=Offset(base), term=Term(1), append_time=Micros(base + 1))
        log.append([batch])
        if log.unflushed_bytes > 4 << 20:
            log.sync()


def _lags(work: Callable[[], None]) -> list[float]:
    """Do `work` in a thread; return by how much each sleep of a millisecond was too long."""
    thread = threading.Thread(target=work)
    thread.start()
    lags = [0.0]
    while thread.is_alive():
        started = time.perf_counter()
        time.sleep(0.001)
        lags.append(time.perf_counter() - started - 0.001)
    thread.join()
    return lags


if __name__ == "__main__":
    sys.exit(main())
