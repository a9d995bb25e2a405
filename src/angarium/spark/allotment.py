"""How much one trigger reads: a limit, shared among the partitions by how much each has waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

TopicPartition: TypeAlias = tuple[str, int]
"""A topic and one of its partitions."""


def allotted(waiting: Mapping[TopicPartition, int], records_max: int) -> dict[TopicPartition, int]:
    """Return how many records to read of each partition: all, or exactly `records_max` together.

    Shares are proportional to what waits; what rounding leaves over goes to the largest remainders,
    so that a trigger that has anything to do always gets on.
    """
    total = sum(waiting.values())
    if total <= records_max:
        return dict(waiting)
    shares = {one: count * records_max // total for one, count in waiting.items()}
    left = records_max - sum(shares.values())
    by_remainder = sorted(waiting, key=lambda one: (-(waiting[one] * records_max % total), one))
    for one in by_remainder[:left]:
        shares[one] += 1
    return shares


def allotted_bytes(
    waiting: Mapping[TopicPartition, int],
    record_bytes: Mapping[TopicPartition, float],
    bytes_max: int,
) -> dict[TopicPartition, int]:
    """Return how many records to read of each partition so that they are about `bytes_max`.

    `record_bytes` is the size of a record, as far as it is known. At least one record is read.
    """
    total = sum(count * record_bytes[one] for one, count in waiting.items())
    if total <= bytes_max:
        return dict(waiting)
    records = sum(waiting.values())
    return allotted(waiting, max(1, int(records * (bytes_max / total))))
