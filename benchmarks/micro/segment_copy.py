"""What taking over copied segments costs: how long a replica's event loop stands still.

    python -m benchmarks.micro.segment_copy [--mb 400] [--folder DIR]

Chunks are written, verified and sealed in threads while they arrive; only `finish` and opening the
log again happen on the loop, during which nobody can read the partition.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from angarium.batch import encode, stamp
from angarium.ids import Micros, Offset, Term
from angarium.log.os_disk import OsDisk
from angarium.log.segments import PartitionLog, SegmentConfig, SegmentImport

RECORDS = 1_000
SYNC_EVERY = 50
"""Batches of about a megabyte, so that the source's memory stays small."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=400)
    parser.add_argument("--folder", help="a folder on a disk, not tmpfs, or syncs cost nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source = filled(Path(folder, "source"), batches=options.mb)
        target = OsDisk(Path(folder, "target"))
        importing = SegmentImport.begin(target, "p", source.manifest())
        started = time.perf_counter()
        while (wanted := importing.missing()) is not None:
            chunk = source.read_segment(*wanted)
            importing.write(wanted.segment, wanted.position, chunk)
        copied = time.perf_counter()
        importing.finish()
        finished = time.perf_counter()
        PartitionLog.open(target, "p", SegmentConfig())
        opened = time.perf_counter()
        segments = importing.manifest.segments
        size = sum(one.bytes for one in segments) / 1e6
        print(f"{size:,.0f} MB in {len(segments)} segments")
        print(f"in threads: copy, verify, seal   {1_000 * (copied - started):>10,.1f} ms")
        print(f"on the loop: finish              {1_000 * (finished - copied):>10,.1f} ms")
        print(f"on the loop: open the log        {1_000 * (opened - finished):>10,.1f} ms")


def filled(folder: Path, *, batches: int) -> PartitionLog:
    """Return a log with so many batches of about a megabyte."""
    folder.mkdir()
    log = PartitionLog.open(OsDisk(folder), "s", SegmentConfig())
    plain = encode([bytes(1_000)] * RECORDS)
    for number in range(batches):
        batch = bytearray(plain)
        base = Offset(number * RECORDS)
        stamp(batch, base_offset=base, term=Term(1), append_time=Micros(number + 1))
        log.append([bytes(batch)])
        if number % SYNC_EVERY == SYNC_EVERY - 1:
            log.sync()
    log.sync()
    return log


if __name__ == "__main__":
    main()
