"""What one applied entry costs, and that it does not cost more when there is more to remember.

    python -m benchmarks.micro.machine [--format json] [--quick]

The baseline of an append is the least that must happen to such an entry in Python: read the
batch's header, look one producer up, checksum the bytes, join the pieces. Curves repeat one
operation while the number of groups, pending acknowledgements or producers grows by decades; a
flat line is the point. A snapshot's figure is its longest slice: how long the event loop stands.
Times are the processor's, so that other work on the machine blurs them less.
"""

from __future__ import annotations

import argparse
import gc
import json
from time import process_time
from typing import TYPE_CHECKING

import google_crc32c

from angarium.batch import Batch
from angarium.batch import encode as encode_batch
from angarium.ids import Index, Micros, Offset, ProducerId, Sequence, Term
from angarium.kinds import GroupKind
from angarium.machine import Cursors, PartitionMachine, Projection, encode
from angarium.machine.changes import Ack, Open, Retry

if TYPE_CHECKING:
    from collections.abc import Callable

TERM = Term(1)
STRIDE = 10
"""Pending acknowledgements are this far apart, so that none joins its neighbour."""


class Report:
    """Collects rows and prints them at the end."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float | None]] = {}

    def add(self, name: str, micros: float, baseline: float | None = None) -> None:
        """Note a figure in µs."""
        ratio = micros / baseline if baseline else None
        self.rows[name] = {"micros": micros, "baseline": baseline, "ratio": ratio}

    def show(self, form: str) -> None:
        """Print everything."""
        if form == "json":
            print(json.dumps(self.rows, indent=2))
            return
        print(f"{'':<58}{'µs':>10}{'baseline':>10}{'ratio':>8}")
        for name, row in self.rows.items():
            baseline = f"{row['baseline']:.2f}" if row["baseline"] else ""
            ratio = f"{row['ratio']:.1f}" if row["ratio"] else ""
            print(f"{name:<58}{row['micros']:>10.2f}{baseline:>10}{ratio:>8}")


class Clockwork:
    """A leader that makes entries and a machine that applies them."""

    def __init__(self) -> None:
        self.machine = PartitionMachine()
        self.index = 0
        self.now = 1_000

    def projection(self) -> Projection:
        """Return a new view ahead of the machine."""
        return Projection(self.machine)

    def apply(self, data: bytes) -> None:
        """Apply one entry."""
        self.index += 1
        self.machine.apply(Index(self.index), TERM, data)

    def cursors(self, *changes: Ack | Open | Retry) -> bytes:
        """Return an entry that changes groups."""
        self.now += 1
        time = max(self.now, self.machine.clock + 1)
        self.now = time
        return encode(Cursors(time=Micros(time), changes=changes))


def each(entries: list[bytes], apply: Callable[[bytes], None], rounds: int = 5) -> float:
    """Return the µs per entry, in the best of `rounds` equal parts: noise only ever adds."""
    size = len(entries) // rounds
    results = []
    gc.collect()
    gc.disable()
    for part in range(rounds):
        share = entries[part * size : (part + 1) * size]
        began = process_time()
        for entry in share:
            apply(entry)
        results.append((process_time() - began) / size * 1e6)
    gc.enable()
    return min(results)


def bare(batch: bytearray, count: int) -> float:
    """Return the µs of the least one can do for one appended batch."""
    producers = {7: (0, 0)}
    pieces = bytes(8)

    def once(_: bytes) -> None:
        header = Batch.trusted(batch).header
        producers.get(header.producer_id)
        google_crc32c.value(b"".join((pieces, batch)))

    return each([b""] * count, once)


def appends(report: Report, count: int) -> None:
    """Measure apply and projection of one batch, with dedup, small and large."""
    for records in (1, 100, 640):
        # Few enough to stay in memory that is warm: page faults are not the machine's.
        count = min(count, 200_000 // records)
        work = Clockwork()
        projection = work.projection()
        batches = [
            encode_batch(
                [b"x" * 100] * records,
                producer_id=ProducerId(7),
                sequence=Sequence(number * records),
            )
            for number in range(count)
        ]
        size = len(batches[0])
        baseline = bare(batches[0], count)
        entries: list[bytes] = []
        pending = iter(batches)

        def prepare(_: bytes, *, projection: Projection = projection) -> None:
            prepared = projection.append([next(pending)], term=TERM, now=Micros(1))  # noqa: B023
            assert prepared.data is not None
            entries.append(prepared.data)  # noqa: B023

        report.add(f"project an append of {size:,} bytes", each([b""] * count, prepare), baseline)
        report.add(f"apply an append of {size:,} bytes", each(entries, work.apply), baseline)


def acks_by_pending(report: Report, count: int, sizes: list[int]) -> None:
    """Measure one more scattered acknowledgement while more and more are pending."""
    work = Clockwork()
    projection = work.projection()
    span = sizes[-1] * STRIDE + (count + 10) * STRIDE * (len(sizes) + 1)
    while work.machine.next_offset < span:
        prepared = projection.append([encode_batch([None] * 100_000)], term=TERM, now=Micros(1))
        assert prepared.data is not None
        work.apply(prepared.data)
    work.apply(work.cursors(Open("g", GroupKind.QUEUE, Offset(0))))
    generation = Index(work.index)
    position = STRIDE
    for size in sizes:
        held = work.machine.groups.by_name["g"].acked
        while held.count < size:
            work.apply(work.cursors(Ack("g", generation, (position, position + 1))))
            position += STRIDE
        entries = []
        for _ in range(count):
            entries.append(work.cursors(Ack("g", generation, (position, position + 1))))
            position += STRIDE
        report.add(f"apply one ack, {size:,} pending", each(entries, work.apply))
    again = [
        work.cursors(*(Ack("g", generation, (n, n + 1)) for n in range(start, start + 100)))
        for start in range(0, 100 * count // 20, 100)
    ]
    report.add("apply one ack, 100 in an entry", each(again, work.apply) / 100)


def costs_by_groups(report: Report, count: int, sizes: list[int]) -> Clockwork:
    """Measure an append and an acknowledgement while there are more and more groups."""
    work = Clockwork()
    work.apply(work.cursors(Open("g0", GroupKind.STREAM, Offset(0))))
    generation = Index(work.index)
    for size in sizes:
        known = len(work.machine.groups.by_name)
        for number in range(known, size):
            work.apply(work.cursors(Open(f"g{number}", GroupKind.STREAM, Offset(0))))
        projection = work.projection()
        appended = []
        for _ in range(count):
            prepared = projection.append([encode_batch([b"x" * 100])], term=TERM, now=Micros(1))
            assert prepared.data is not None
            appended.append(prepared.data)
        report.add(f"apply an append, {size:,} groups", each(appended, work.apply))
        end = work.machine.next_offset
        acked = [
            work.cursors(Ack("g0", generation, (0, end - count + number + 1)))
            for number in range(count)
        ]
        report.add(f"apply one ack, {size:,} groups", each(acked, work.apply))
    return work


def snapshots(report: Report, work: Clockwork, pending: int) -> None:
    """Measure the slices of a snapshot of many groups, one of which has a lot pending."""
    projection = work.projection()
    while work.machine.next_offset < pending * STRIDE + 10:
        prepared = projection.append([encode_batch([None] * 100_000)], term=TERM, now=Micros(1))
        assert prepared.data is not None
        work.apply(prepared.data)
    work.apply(work.cursors(Open("busy", GroupKind.QUEUE, Offset(0))))
    generation = Index(work.index)
    for start in range(0, pending, 1_000):
        offsets = [STRIDE * n for n in range(start + 1, start + 1_001)]
        work.apply(work.cursors(*(Ack("busy", generation, (one, one + 1)) for one in offsets)))
        work.apply(
            work.cursors(
                *(
                    Retry("busy", generation, Offset(one + 1), 1, Micros(9), "why")
                    for one in offsets
                )
            )
        )
    began = process_time()
    slices = work.machine.snapshot_slices()
    steps = [process_time() - began]
    taken = []
    while True:
        began = process_time()
        one = next(slices, None)
        steps.append(process_time() - began)
        if one is None:
            break
        taken.append(one)
    name = f"{len(work.machine.groups.by_name):,} groups, {pending:,} acks, {pending:,} retries"
    report.add(f"snapshot's longest slice: {name}", max(steps) * 1e6)
    report.add(f"snapshot in all: {name}", sum(steps) * 1e6)
    slices = work.machine.snapshot_slices()
    entry = work.cursors(Ack("busy", generation, (STRIDE * 3 + 2, STRIDE * 3 + 3)))
    began = process_time()
    work.apply(entry)
    report.add("first change of that group during a snapshot", (process_time() - began) * 1e6)
    restored = PartitionMachine()
    steps = []
    reader = restored.restore_slices(b"".join(taken))
    began = process_time()
    for _ in reader:
        steps.append(process_time() - began)
        began = process_time()
    report.add("restore's longest slice", max(steps) * 1e6)
    report.add("restore in all", sum(steps) * 1e6)


def forks(report: Report, sizes: list[int]) -> None:
    """Measure becoming leader while there are more and more producers."""
    work = Clockwork()
    projection = work.projection()
    known = 0
    for size in sizes:
        for producer in range(known + 1, size + 1):
            batch = encode_batch([b"x"], producer_id=ProducerId(producer))
            prepared = projection.append([batch], term=TERM, now=Micros(1))
            assert prepared.data is not None
            work.apply(prepared.data)
        known = size

        def fork(_: bytes) -> None:
            work.projection()

        report.add(
            f"fork a projection, {size:,} producers",
            each([b""] * 200, fork),
        )


def main() -> None:
    """Run everything and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds and sizes")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    report = Report()
    appends(report, 5_000 // scale)
    acks_by_pending(
        report, 2_000 // scale, [size // scale for size in (100, 1_000, 10_000, 100_000)]
    )
    work = costs_by_groups(
        report, 2_000 // scale, [size // scale for size in (10, 100, 1_000, 10_000)]
    )
    snapshots(report, work, 100_000 // scale)
    forks(report, [size // scale for size in (100, 1_000, 10_000)])
    report.show(options.format)


if __name__ == "__main__":
    main()
