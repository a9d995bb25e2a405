"""The records inside stored batches: those that are meant, and not their neighbours."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch
from angarium.batch.deadlines import outside
from angarium.errors import CorruptData, InvalidBatch
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from angarium.api import Delivery, Handed
    from angarium.batch import Record
    from angarium.batch.deadlines import Ranges
    from angarium.ids import Buffer

PORTION_RECORDS: Final = 500
"""Records in one portion at the most."""

PORTION_BYTES: Final = 256 << 10
"""About how many bytes of values one portion has at the most; a larger record comes alone."""


def readable(buffer: Buffer, *, topic: str, partition: int) -> Batch:
    """Return a stored batch after checking all of it: its section may never have been opened."""
    try:
        return Batch.parse(buffer, compacted=True)
    except InvalidBatch as error:
        raise CorruptData(
            f"a stored batch of {topic}/{partition} cannot be read: {error}"
        ) from error


def parts_of(batch: Batch, expired: Ranges, *, from_offset: Offset) -> list[tuple[int, int]]:
    """Return the positions to tell of, from an offset on: those of records not expired."""
    start = batch.position_of(from_offset)
    if not expired:
        return [(start, len(batch))] if start < len(batch) else []
    parts = []
    for first, past in outside(expired, start=from_offset, stop=batch.next_offset):
        part = batch.slice(Offset(first), Offset(past))
        if len(part):
            parts.append((part.start, part.stop))
    return parts


def lent_parts(batch: Batch, handed: Handed) -> list[tuple[int, int]]:
    """Return the positions of the records of a batch that a consumer was handed."""
    flat = handed.ranges
    parts = []
    for first, past in zip(flat[::2], flat[1::2], strict=True):
        if first < batch.next_offset and past > batch.base_offset:
            part = batch.slice(Offset(first), Offset(past))
            parts.append((part.start, part.stop))
    return parts


def records_of(batch: Batch, *, from_offset: Offset, expired: Ranges) -> Iterator[Record]:
    """Return a stored batch's records from an offset on, without those that have expired."""
    parts = parts_of(batch, expired, from_offset=from_offset)
    if len(parts) == 1:
        return batch.records(*parts[0])
    return chain.from_iterable(batch.records(*part) for part in parts)


def delivered(delivery: Delivery) -> Iterator[tuple[Batch, Iterator[Record]]]:
    """Yield the batches of a delivery with the records that are meant."""
    for buffer in delivery.batches:
        batch = readable(buffer, topic=delivery.topic, partition=delivery.partition)
        if delivery.live:
            yield batch, iter(batch)
        else:
            yield (
                batch,
                records_of(batch, from_offset=delivery.from_offset, expired=delivery.expired),
            )


def lent(handed: Handed) -> Iterator[Record]:
    """Yield the records that a consumer was handed, and not their neighbours in the batches."""
    for buffer in handed.batches:
        batch = readable(buffer, topic=handed.topic, partition=handed.partition)
        for start, stop in lent_parts(batch, handed):
            yield from batch.records(start, stop)


def portions(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in lists that go out together."""
    portion: list[Record] = []
    size = 0
    for record in records:
        portion.append(record)
        size += len(record.value or b"")
        if len(portion) == PORTION_RECORDS or size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def ranges_of(offsets: Iterable[int]) -> tuple[int, ...]:
    """Return ascending offsets as ranges: first, past the last, and so on."""
    flat: list[int] = []
    for offset in offsets:
        if flat and flat[-1] == offset:
            flat[-1] += 1
        else:
            flat += (offset, offset + 1)
    return tuple(flat)
