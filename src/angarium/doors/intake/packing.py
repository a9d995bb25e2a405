"""How the records of one request become batches: where each goes, and what travels together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch import BatchBuilder, encode
from angarium.doors.intake.once import Once
from angarium.doors.intake.outgoing import BARE, NOBODY, Outgoing, added, single_batch
from angarium.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.doors.intake.once import ProducerIdentities
    from angarium.doors.intake.partitions import TopicShape
    from angarium.ids import Buffer

BATCH_BYTES: Final = 1 << 20
"""Records of one request become batches of this size at the most, or smaller where the topic says
so. A record that is larger is a batch of its own, which the broker may refuse."""

ROW_BYTES: Final = 16
"""What a record takes in a batch besides its data, at the most, if it has nothing else."""


class Columns(NamedTuple):
    """Records that have nothing but values and perhaps keys."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None

    def records(self) -> list[Outgoing]:
        """Return them one by one."""
        if self.keys is None:
            return [Outgoing(value) for value in self.values]
        return [Outgoing(value, key) for value, key in zip(self.values, self.keys, strict=True)]


def placed(
    records: Sequence[Outgoing],
    shape: TopicShape,
    partition: int | None,
    producers: ProducerIdentities,
) -> list[int]:
    """Return each record's partition; those without a key go to one of them together."""
    only = _only_partition(shape, partition, producers)
    if only is not None:
        return [only] * len(records)
    together = _together(shape, producers)
    may_repeat = producers is not NOBODY
    return [
        together if one.key is None else shape.partition_for(one.key, may_repeat=may_repeat)
        for one in records
    ]


def grouped(records: Sequence[Outgoing], partitions: list[int]) -> dict[int, list[Outgoing]]:
    """Return the records of each partition, in their order."""
    found: dict[int, list[Outgoing]] = {}
    for partition, record in zip(partitions, records, strict=True):
        found.setdefault(partition, []).append(record)
    return found


def packed(
    records: Columns | Sequence[Outgoing],
    shape: TopicShape,
    *,
    partition: int | None,
    producers: ProducerIdentities = NOBODY,
) -> tuple[dict[int, tuple[Buffer, ...]], list[int]]:
    """Return the batches of each partition, and the partition of each record."""
    bytes_max = min(BATCH_BYTES, shape.batch_bytes_max)
    if isinstance(records, Columns):
        only = _only_partition(shape, partition, producers)
        if only is None and records.keys is None:
            only = _together(shape, producers)
        if only is not None:
            batch = _column_batch(records, bytes_max=bytes_max, producers=producers)
            if batch is not None:
                return {only: (batch,)}, [only] * len(records.values)
        records = records.records()
    partitions = placed(records, shape, partition, producers)
    batches = {
        number: tuple([batch for batch, _ in cut(some, bytes_max=bytes_max, producers=producers)])
        for number, some in grouped(records, partitions).items()
    }
    return batches, partitions


def _only_partition(
    shape: TopicShape, partition: int | None, producers: ProducerIdentities
) -> int | None:
    if partition is not None or shape.refusal is not None:
        return partition
    return (shape.layout if producers is NOBODY else shape.steady).only


def _together(shape: TopicShape, producers: ProducerIdentities) -> int:
    """Return the partition of records without a key: the same for all of them, and again for a
    request that comes again."""
    key = producers.key if isinstance(producers, Once) else None
    return shape.partition_for(key, may_repeat=producers is not NOBODY)


def _column_batch(
    columns: Columns, *, bytes_max: int, producers: ProducerIdentities
) -> Buffer | None:
    """Return columns as one batch, without looking at any record; None if they may not fit."""
    values, keys = columns
    size = sum(map(len, filter(None, values))) + ROW_BYTES * len(values)
    if keys is not None:
        size += sum(map(len, filter(None, keys)))
    if size >= bytes_max // 2:
        return None
    producer_id, epoch, sequence = producers.at(0, 0, len(values))
    return encode(values, keys=keys, producer_id=producer_id, epoch=epoch, sequence=sequence)


def cut(
    records: Sequence[Outgoing], *, bytes_max: int, producers: ProducerIdentities = NOBODY
) -> list[tuple[Buffer, int]]:
    """Pack records into as few batches as the limit allows, in order.

    Return each batch with its number of records. One that is too large for any batch of this size
    is a batch of its own, beyond the limit.
    """
    # Column by column: a look at each record costs as much as packing it.
    values, keys, *others = zip(*records, strict=True)
    if all(other.count(bare) == len(records) for other, bare in zip(others, BARE, strict=True)):
        columns = Columns(values, None if keys.count(None) == len(keys) else keys)
        batch = _column_batch(columns, bytes_max=bytes_max, producers=producers)
        if batch is not None:
            return [(batch, len(records))]
    builder = BatchBuilder(bytes_max=bytes_max)
    batches: list[tuple[Buffer, int]] = []

    def close(past: int) -> None:
        """End the batch in front of the record with number `past`."""
        count = len(builder)
        if count:
            producer_id, epoch, sequence = producers.at(len(batches), past - count, count)
            batch = builder.build(producer_id=producer_id, epoch=epoch, sequence=sequence)
            batches.append((batch, count))

    for number, record in enumerate(records):
        if not _joins(builder, record):
            close(number)
            if not _joins(builder, record):
                single = single_batch(record, producers.at(len(batches), number, 1))
                batches.append((single, 1))
    close(len(records))
    return batches


def _joins(builder: BatchBuilder, record: Outgoing) -> bool:
    """Add a record to a batch; False if that is too full for it, or it should go alone."""
    if record.size > builder.bytes_max // 2:
        return False
    try:
        return added(builder, record)
    except TooLarge:  # many headers take more than their data
        return False
