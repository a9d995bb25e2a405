"""What delayed records cost: memory, appending, finding those that are due, opening.

    python -m benchmarks.micro.delays [--records 10000000] [--format json] [--check] [--folder DIR]

Each record has a delivery time of its own, at random within a day, so that order of delivery has
nothing to do with order of offsets. Batches of 500 records of 16 bytes. The baseline is the same
log without delays, in a process of its own, in the same run. `--check` fails above 300 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Final

from angarium.batch import encode, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.os_disk import OsDisk
from angarium.log.segments import PartitionLog

BATCH_RECORDS: Final = 500
VALUE: Final = b"0123456789abcdef"
DAY_MICROS: Final = 86_400 * 1_000_000
MEMORY_MAX_MB: Final = 300
NOW: Final = 1_700_000_000_000_000
LAST: Final = 1 << 63
QUESTIONS: Final = 500


def main() -> int:
    """Measure with and without delays, each in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--part", choices=("delayed", "plain"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(json.dumps(measured(Path(folder), options.records, options.part == "delayed")))
        return 0
    found = {part: _in_a_process(part, options) for part in ("delayed", "plain")}
    if options.format == "json":
        print(json.dumps(found, indent=2))
    else:
        print(f"{options.records:,} records            {'delayed':>12} {'plain':>12}")
        for name in found["delayed"]:
            plain = found["plain"].get(name)
            shown = "" if plain is None else f"{plain:12,.2f}"
            print(f"{name:<32} {found['delayed'][name]:12,.2f} {shown}")
    too_much = found["delayed"]["process, MB at the peak"] > MEMORY_MAX_MB
    if too_much:
        print(f"above the target of {MEMORY_MAX_MB} MB")
    return 1 if options.check and too_much else 0


def measured(folder: Path, records: int, is_delayed: bool) -> dict[str, float]:
    """Fill a log, ask it, open it again and ask it as a new leader would."""
    log = PartitionLog.open(OsDisk(folder), "p")
    started = time.perf_counter()
    _fill(log, records, is_delayed)
    figures = {"append and seal, s": time.perf_counter() - started}
    log.close()
    started = time.perf_counter()
    log = PartitionLog.open(OsDisk(folder), "p", durable_until=log.end_offset)
    figures["open again, s"] = time.perf_counter() - started
    if is_delayed:
        figures |= _asked(log, records)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures["process, MB at the peak"] = peak * 1024 / 1e6
    return figures


def _fill(log: PartitionLog, records: int, is_delayed: bool) -> None:
    rng = random.Random(1)
    values = [VALUE] * BATCH_RECORDS
    for base in range(0, records, BATCH_RECORDS):
        times = None
        if is_delayed:
            draws = array("I", rng.randbytes(4 * BATCH_RECORDS))
            times = [NOW + draw % 86_400_000 * 1_000 + 1 for draw in draws]
        batch = encode(values, deliver_at=times)
        stamp(batch, base_offset=Offset(base), term=Term(1), append_time=Micros(NOW + base))
        log.append([batch])
        if log.unflushed_bytes > 1 << 20:
            log.sync()
    log.sync()


def _asked(log: PartitionLog, records: int) -> dict[str, float]:
    """Return what it takes to find the first one, and then a thousand at a time."""
    delays = log.delays
    started = time.perf_counter()
    first = delays.next_due(NOW, floor=0)
    assert first is not None
    figures = {"first question, ms": (time.perf_counter() - started) * 1e3}
    slowest = 0.0
    found = 0
    after = (NOW, LAST)
    begun = time.perf_counter()
    for _ in range(QUESTIONS):
        started = time.perf_counter()
        some = delays.due(after, NOW + DAY_MICROS, floor=0, limit=1_000)
        slowest = max(slowest, time.perf_counter() - started)
        found += len(some)
        after = some[-1]
    took = time.perf_counter() - begun
    figures["a thousand due, ms"] = took / QUESTIONS * 1e3
    figures["the slowest of these, ms"] = slowest * 1e3
    figures["due records found per second"] = found / took
    figures["files of delays, MB"] = (
        sum(entry.stat().st_size for entry in _files(log) if entry.name.endswith(".delay")) / 1e6
    )
    assert found == min(records, QUESTIONS * 1_000)
    return figures


def _files(log: PartitionLog) -> list[os.DirEntry[str]]:
    disk = log._disk
    assert isinstance(disk, OsDisk)
    return list(os.scandir(disk.root / "p"))


def _in_a_process(part: str, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.micro.delays", "--part", part]
    command += ["--records", str(options.records)]
    if options.folder is not None:
        command += ["--folder", str(options.folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    sys.exit(main())
