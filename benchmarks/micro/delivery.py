"""What consumer groups cost the leader of a partition, in µs of processor time.

    python -m benchmarks.micro.delivery [--format json] [--quick]

Everything the pure room does is measured and nothing else: no log, no network, no commit. The curve
that must stay flat is the one over what is pending; that over the number of groups needs a node
(`many_groups`).
"""

from __future__ import annotations

import argparse
import gc
import json
from time import process_time
from typing import TYPE_CHECKING

from angarium.delivery import Accepted, GroupDelivery, Stretch
from angarium.ids import Index, Micros, Offset
from angarium.kinds import GroupKind
from angarium.machine.changes import GroupSettings, Open
from angarium.machine.cursors import Group, Groups
from angarium.machine.partition_limits import PartitionLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.machine.changes import Change
    from angarium.machine.outcomes import Outcome

START = Micros(1_000_000)
LIMITS = PartitionLimits()


class Report:
    """Collects rows and prints them at the end."""

    def __init__(self) -> None:
        self.rows: dict[str, float] = {}

    def add(self, name: str, micros: float) -> None:
        """Note a figure in µs."""
        self.rows[name] = micros

    def show(self, form: str) -> None:
        """Print everything."""
        if form == "json":
            print(json.dumps(self.rows, indent=2))
            return
        for name, micros in self.rows.items():
            print(f"{name:<64}{micros:>10.2f} µs")


class PlainRecords:
    """A partition of any length whose records neither expire nor wait."""

    def __init__(self, end: int, keys: int = 0) -> None:
        self.start_offset = 0
        self.end_offset = end
        self._keys = keys

    @property
    def lendable_end(self) -> int:
        """The same."""
        return self.end_offset

    def stretch(self, start: int, *, limit: int, now: Micros, due: int) -> Stretch:
        """Say that there is nothing special."""
        del now, due
        return Stretch(min(start + limit, self.end_offset))

    def key_hashes(self, start: int, end: int) -> Sequence[int]:
        """Return keys in turn."""
        return [1 + offset % self._keys for offset in range(start, end)]

    def due(
        self, after: tuple[int, int], until: int, *, floor: int, limit: int
    ) -> Sequence[tuple[int, int]]:
        """Return nothing."""
        del after, until, floor, limit
        return ()

    def next_due(self, after: int, *, floor: int) -> int | None:
        """Return nothing."""
        del after, floor
        return None


class Leader:
    """A group and its machine, in which everything is committed at once."""

    def __init__(self, kind: GroupKind, records: PlainRecords) -> None:
        self.machine = Groups()
        self.records = records
        self._index = 1
        change = Open("g", kind, Offset(0), GroupSettings())
        self._apply(change)
        self.delivery = GroupDelivery(self.group, records, seed=1, now=START)

    @property
    def group(self) -> Group:
        """The group in the machine."""
        return self.machine.by_name["g"]

    def _apply(self, change: Change) -> Outcome:
        self._index += 1
        return self.machine.change(
            change,
            index=Index(self._index),
            time=START,
            next_offset=self.records.end_offset,
            limits=LIMITS,
        )

    def commit(self) -> None:
        """Step once and let everything it wants be so."""
        for number, change in self.delivery.advance(START).proposals:
            outcome = self._apply(change)
            self.delivery.confirmed(number, outcome, now=START)


def spent(action: Callable[[], object]) -> float:
    """Return the processor time of an action in µs."""
    gc.collect()
    gc.disable()
    began = process_time()
    action()
    took = process_time() - began
    gc.enable()
    return took * 1e6


def lending(report: Report, kind: GroupKind, *, size: int, rounds: int) -> None:
    """Measure lending ranges of `size` records and acknowledging each range at once."""
    whole = Leader(kind, PlainRecords(size * (rounds + 2)))
    whole.delivery.attach("a", credit=size, now=START)
    whole.commit()
    numbers = iter(range(rounds))

    def around() -> None:
        for number in numbers:
            taken = (number * size, (number + 1) * size)
            whole.delivery.acknowledge("a", taken, now=START)
            whole.commit()

    name = kind.name.lower()
    report.add(f"{name}: lend, acknowledge and commit {size:,} records", spent(around) / rounds)


def single_acks(report: Report, *, pending: Sequence[int], rounds: int) -> None:
    """Measure acknowledging single records while more and more are on loan."""
    for count in pending:
        leader = Leader(GroupKind.QUEUE, PlainRecords(count + 4 * rounds))
        delivery = leader.delivery
        delivery.attach("a", credit=count, now=START)
        leader.commit()
        assert delivery.on_loan == count
        # From the middle, so that the floor stands still and everything stays pending.
        offsets = range(count // 2, count // 2 + min(rounds, count // 4))

        def acks(offsets: range = offsets, delivery: GroupDelivery = delivery) -> None:
            for offset in offsets:
                done = delivery.acknowledge("a", (offset, offset + 1), now=START)
                assert isinstance(done, Accepted)

        each = len(offsets)
        report.add(f"acknowledge one record, {count:,} on loan", spent(acks) / each)
        report.add(
            f"commit that, with all others of a step, {count:,} on loan",
            spent(leader.commit) / each,
        )

        def one_by_one(leader: Leader = leader, start: int = offsets.stop, n: int = each) -> None:
            for offset in range(start, start + min(n, 200)):
                leader.delivery.acknowledge("a", (offset, offset + 1), now=START)
                leader.commit()

        report.add(
            f"the same, a step for each record, {count:,} on loan",
            spent(one_by_one) / min(each, 200),
        )


def failures(report: Report, *, count: int) -> None:
    """Measure how long the leases of many records take to end, and the longest step."""
    leader = Leader(GroupKind.QUEUE, PlainRecords(count))
    delivery = leader.delivery
    delivery.attach("a", credit=count, now=START)
    leader.commit()
    delivery.detach("a", clean=False, now=START)
    steps = []
    while delivery.on_loan:
        steps.append(spent(lambda: delivery.advance(START)))
    report.add(f"a member dies with {count:,} records: each record", sum(steps) / count)
    report.add(f"a member dies with {count:,} records: longest step", max(steps))


def main() -> None:
    """Run everything and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds and sizes")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    report = Report()
    for kind in (GroupKind.STREAM, GroupKind.QUEUE):
        for size in (1, 100, 1_000, 10_000):
            lending(report, kind, size=size, rounds=500 // scale)
    single_acks(
        report,
        pending=[size // scale for size in (100, 10_000, 100_000)],
        rounds=5_000 // scale,
    )
    failures(report, count=100_000 // scale)
    report.show(options.format)


if __name__ == "__main__":
    main()
