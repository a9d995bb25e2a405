"""How the records of one request become batches: where each goes, and what travels together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch import BatchBuilder, encode
from angarium.doors.http.bodies import Columns
from angarium.doors.http.once import identity_at
from angarium.doors.http.records import Outgoing, single_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.doors.http.once import Once
    from angarium.doors.partitions import TopicShape
    from angarium.ids import Buffer

BATCH_BYTES: Final = 1 << 20
"""Records of one request become batches of this size at the most, or smaller where the topic says
so. A record that is larger is a batch of its own, which the broker may refuse."""

ROW_BYTES: Final = 16
"""What a record takes in a batch besides its data, at the most, if it has nothing else."""

_BARE: Final = Outgoing(None)[2:]
"""What a record has besides key and value if it has nothing."""


def placed(
    records: Sequence[Outgoing], shape: TopicShape, partition: int | None, once: Once | None
) -> list[int]:
    """Return each record's partition; those without a key go to one of them together."""
    if partition is not None:
        return [partition] * len(records)
    if shape.partitions == 1:
        return [0] * len(records)
    together = _together(shape, once)
    return [together if one.key is None else shape.partition_for(one.key) for one in records]


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
    once: Once | None = None,
) -> tuple[dict[int, tuple[Buffer, ...]], list[int]]:
    """Return the batches of each partition, and the partition of each record."""
    bytes_max = min(BATCH_BYTES, shape.batch_bytes_max)
    if isinstance(records, Columns):
        only = _only_partition(records, shape, partition, once)
        if only is not None:
            batch = _column_batch(records, bytes_max=bytes_max, once=once)
            if batch is not None:
                return {only: (batch,)}, [only] * len(records.values)
        records = records.records()
    partitions = placed(records, shape, partition, once)
    batches = {
        number: record_batches(some, bytes_max=bytes_max, once=once)
        for number, some in grouped(records, partitions).items()
    }
    return batches, partitions


def _only_partition(
    columns: Columns, shape: TopicShape, partition: int | None, once: Once | None
) -> int | None:
    """Return the partition that all records go to, if it is one."""
    if partition is not None:
        return partition
    if shape.partitions == 1:
        return 0
    return _together(shape, once) if columns.keys is None else None


def _together(shape: TopicShape, once: Once | None) -> int:
    """Return where records without a key go, all to the same place."""
    return shape.partition_for(None) if once is None else once.partition(shape.partitions)


def _column_batch(columns: Columns, *, bytes_max: int, once: Once | None) -> Buffer | None:
    """Return columns as one batch, without looking at any record; None if they may not fit."""
    values, keys = columns.values, columns.keys
    size = sum([len(one or b"") for one in values]) + ROW_BYTES * len(values)
    if keys is not None:
        size += sum([len(one) for one in keys if one is not None])
    if size >= bytes_max // 2:
        return None
    producer_id, epoch, sequence = identity_at(once, 0, len(values))
    return encode(values, keys=keys, producer_id=producer_id, epoch=epoch, sequence=sequence)


def record_batches(
    records: Sequence[Outgoing], *, bytes_max: int, once: Once | None = None
) -> tuple[Buffer, ...]:
    """Pack records into as few batches as the limit allows, in order."""
    if all(one[2:] == _BARE for one in records):
        keys = [one.key for one in records]
        columns = Columns(
            [one.value for one in records], None if keys.count(None) == len(keys) else keys
        )
        batch = _column_batch(columns, bytes_max=bytes_max, once=once)
        if batch is not None:
            return (batch,)
    return _Packing(bytes_max, once).packed(records)


class _Packing:
    """Records of any kind and size, one after the other."""

    def __init__(self, bytes_max: int, once: Once | None) -> None:
        self._bytes_max = bytes_max
        self._once = once
        self._builder = BatchBuilder(bytes_max=bytes_max)
        self._batches: list[Buffer] = []

    def packed(self, records: Sequence[Outgoing]) -> tuple[Buffer, ...]:
        """Return the batches of all records."""
        for record in records:
            if len(record.value or b"") + len(record.key or b"") > self._bytes_max // 2:
                self._close()
                identity = identity_at(self._once, len(self._batches), 1)
                self._batches.append(single_batch(record, identity))
            elif not self._added(record):
                self._close()
                self._added(record)
        self._close()
        return tuple(self._batches)

    def _added(self, record: Outgoing) -> bool:
        value, key, headers, timestamp, expires_at, deliver_at = record
        return self._builder.add(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
        )

    def _close(self) -> None:
        if not len(self._builder):
            return
        producer_id, epoch, sequence = identity_at(
            self._once, len(self._batches), len(self._builder)
        )
        self._batches.append(
            self._builder.build(producer_id=producer_id, epoch=epoch, sequence=sequence)
        )
