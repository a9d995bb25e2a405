"""The records inside stored batches: those that are meant for a reader, not their neighbours."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from angarium.batch import Batch
from angarium.batch.deadlines import outside
from angarium.errors import CorruptData, InvalidBatch
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.api.groups import Handed
    from angarium.api.reading import Delivery, FetchRequest, FetchResult
    from angarium.batch import Record
    from angarium.batch.deadlines import Ranges
    from angarium.ids import Buffer

    Rows: TypeAlias = list[tuple[int, int]]
    """Rows of a batch: the first, and the one past the last, of each run."""


def readable(buffer: Buffer, *, topic: str, partition: int) -> Batch:
    """Return a stored batch after checking all of it: its section may never have been opened."""
    try:
        return Batch.parse(buffer, compacted=True)
    except InvalidBatch as error:
        raise CorruptData(
            f"a stored batch of {topic}/{partition} cannot be read: {error}"
        ) from error


def rows_of(batch: Batch, expired: Ranges, *, from_offset: Offset) -> Rows:
    """Return the rows from an offset on, without those of records that have expired."""
    start = batch.position_of(from_offset)
    if not expired:
        return [(start, len(batch))] if start < len(batch) else []
    found = (
        batch.slice(Offset(first), Offset(past))
        for first, past in outside(expired, start=from_offset, stop=batch.next_offset)
    )
    return [(one.start, one.stop) for one in found if len(one)]


def delivered_rows(batch: Batch, delivery: Delivery) -> Rows:
    """Return the rows of a batch that a delivery means; all of them if it passes."""
    if delivery.live:
        return [(0, len(batch))]
    return rows_of(batch, delivery.expired, from_offset=delivery.from_offset)


def lent_rows(batch: Batch, handed: Handed) -> Rows:
    """Return the rows of a batch that a consumer was handed."""
    flat = handed.ranges
    found = (
        batch.slice(Offset(first), Offset(past))
        for first, past in zip(flat[::2], flat[1::2], strict=True)
        if first < batch.next_offset and past > batch.base_offset
    )
    return [(one.start, one.stop) for one in found]


def records_of(batch: Batch, *, from_offset: Offset, expired: Ranges) -> Iterator[Record]:
    """Return a stored batch's records from an offset on, without those that have expired."""
    return _records(batch, rows_of(batch, expired, from_offset=from_offset))


def delivered(delivery: Delivery) -> Iterator[tuple[Batch, Iterator[Record]]]:
    """Yield the batches of a delivery with the records that are meant."""
    for batch in batches_of(delivery):
        yield batch, _records(batch, delivered_rows(batch, delivery))


def lent(handed: Handed) -> Iterator[Record]:
    """Yield the records that a consumer was handed, and not their neighbours in the batches."""
    for batch in batches_of(handed):
        yield from _records(batch, lent_rows(batch, handed))


def batches_of(sent: Delivery | Handed) -> Iterator[Batch]:
    """Yield the batches that are sent, each after checking all of it."""
    for buffer in sent.batches:
        yield readable(buffer, topic=sent.topic, partition=sent.partition)


def _records(batch: Batch, rows: Rows) -> Iterator[Record]:
    if len(rows) == 1:
        return batch.records(*rows[0])
    return chain.from_iterable(batch.records(*some) for some in rows)


def fetched_records(
    result: FetchResult, wanted: FetchRequest, *, limit: int
) -> tuple[list[Record], int]:
    """Return the records that were fetched, up to `limit`, and the offset to go on from."""
    records: list[Record] = []
    after = int(wanted.offset)
    for buffer in result.batches:
        batch = readable(buffer, topic=wanted.topic, partition=wanted.partition)
        for record in records_of(batch, from_offset=wanted.offset, expired=result.expired):
            if len(records) == limit:
                return records, record.offset
            records.append(record)
        # A compacted batch covers offsets beyond its last record, too.
        after = max(after, batch.next_offset)
    return records, after
