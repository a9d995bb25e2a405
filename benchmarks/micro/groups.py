"""What a record of a consumer group costs in the client alone: µs per record, no network.

    python -m benchmarks.micro.groups

A delivery of 1,000 records of 100 bytes is opened, its records are made and acknowledged, and the
settlements are made ready to be sent. The baseline is what a plain reader pays for the records.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Final

from angarium.batch import encode, stamp
from angarium.client.groups.group_records import GroupBatch
from angarium.client.groups.handover import Parcel
from angarium.client.groups.lent_partition import LentPartition
from angarium.client.groups.loans import Loan
from angarium.client.records import received
from angarium.ids import Micros, Offset, Term

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS: Final = 1_000
ROUNDS: Final = 200


def stored() -> bytearray:
    """Return a batch as a node would send it."""
    batch = encode([b"%d" % number + b"." * 96 for number in range(RECORDS)])
    stamp(batch, base_offset=Offset(0), term=Term(1), append_time=Micros(1))
    return batch


def opened(buffer: bytearray) -> tuple[LentPartition, GroupBatch]:
    """Return a delivery as the user gets it."""
    partition = LentPartition(
        "t", 0, group="g", is_ordered=False, call=lambda: None, now=time.monotonic
    )
    loan = Loan(
        partition,
        1,
        ranges=(0, RECORDS),
        attempt=1,
        generation=1,
        renew_at=0.0,
        keep_until=0.0,
    )
    partition.loans[1] = loan
    return partition, GroupBatch(Parcel(loan, memoryview(buffer)))


def plain(buffer: bytearray) -> None:
    """Read the records as a subscription does."""
    for _ in received("t", 0, buffer, from_offset=0):
        pass


def by_record(buffer: bytearray) -> None:
    """Acknowledge each record on its own."""
    partition, batch = opened(buffer)
    for record in batch:
        record.ack_nowait()
    flight = partition.board(0.0)
    assert flight is not None
    assert flight.settlements(partition)[0].ranges == (0, RECORDS)


def every_other(buffer: bytearray) -> None:
    """Acknowledge every other record: nothing coalesces."""
    partition, batch = opened(buffer)
    for record in list(batch)[::2]:
        record.ack_nowait()
    flight = partition.board(0.0)
    assert flight is not None
    assert len(flight.settlements(partition)[0].ranges) == RECORDS


def whole(buffer: bytearray) -> None:
    """Read the values, and acknowledge the delivery as one."""
    partition, batch = opened(buffer)
    batch.values()
    batch.ack_nowait()
    flight = partition.board(0.0)
    assert flight is not None
    flight.settlements(partition)


def micros_per_record(work: Callable[[bytearray], None], buffer: bytearray) -> float:
    """Return the median cost."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work(buffer)
        times.append(time.perf_counter() - began)
    return statistics.median(times) / RECORDS * 1e6


def main() -> None:
    """Print a table."""
    buffer = stored()
    print(f"{'1,000 records of 100 bytes':<34} {'µs/record':>10}")
    for name, work in (
        ("a plain reader's records (baseline)", plain),
        ("records, each acknowledged", by_record),
        ("records, every other acknowledged", every_other),
        ("values, acknowledged as one", whole),
    ):
        print(f"{name:<34} {micros_per_record(work, buffer):>10.3f}")


if __name__ == "__main__":
    main()
