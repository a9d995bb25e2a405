"""Records and batches, to and from protobuf."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch import AT_ONCE, NEVER, Batch, encode, encode_one
from angarium.batch.deadlines import outside
from angarium.errors import CorruptData, InvalidArgument, InvalidBatch
from angarium.ids import NO_PRODUCER, Epoch, Offset, ProducerId, Sequence

if TYPE_CHECKING:
    from angarium.batch import BatchBuilder
    from angarium.batch.deadlines import Ranges
    from angarium.ids import Buffer
    from angarium.proto.v1 import broker_pb2 as pb


class Identity(NamedTuple):
    """Who produced a batch, and which of its records is the first in it."""

    producer_id: ProducerId = NO_PRODUCER
    epoch: Epoch = Epoch(0)
    sequence: Sequence = Sequence(0)


NOBODY: Final = Identity()

_RECORD_OVERHEAD_BYTES: Final = 32
"""What a record's message has besides its data: tags, lengths, an offset, two times."""


class Times(NamedTuple):
    """The three times of a new record, absolute, in µs."""

    timestamp: int
    expires_at: int
    deliver_at: int


# --- inwards ---------------------------------------------------------------------------------


def single_batch(record: pb.NewRecord, identity: Identity = NOBODY) -> bytearray:
    """Return a batch of this one record."""
    value = record.value if record.HasField("value") else None
    key = record.key if record.HasField("key") else None
    timestamp, expires_at, deliver_at = times_of(record)
    producer_id, epoch, sequence = identity
    if record.headers:
        return encode(
            (value,),
            keys=(key,),
            headers=(_pairs(record),),
            timestamps=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
        )
    return encode_one(
        value,
        key=key,
        timestamp=timestamp,
        expires_at=expires_at,
        deliver_at=deliver_at,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
    )


def added(builder: BatchBuilder, record: pb.NewRecord) -> bool:
    """Add a record to a batch that is being built; False if the batch is too full for it."""
    times = times_of(record)
    return builder.add(
        record.value if record.HasField("value") else None,
        key=key_of(record),
        headers=_pairs(record),
        timestamp=times.timestamp,
        expires_at=times.expires_at,
        deliver_at=times.deliver_at,
    )


def key_of(record: pb.NewRecord) -> bytes | None:
    """Return the record's key, if it has one."""
    return record.key if record.HasField("key") else None


def times_of(record: pb.NewRecord) -> Times:
    """Return the record's times; those relative to "now" are counted from this moment."""
    expires_at, deliver_at = record.expires_at_us, record.deliver_at_us
    expires_after, deliver_after = record.expires_after_ms, record.deliver_after_ms
    if expires_after or deliver_after:
        if expires_after < 0 or deliver_after < 0:
            raise InvalidArgument(
                "a record neither expires nor is delivered before it is published"
            )
        now = time.time_ns() // 1_000
        expires_at = now + 1_000 * expires_after if expires_after else expires_at
        deliver_at = now + 1_000 * deliver_after if deliver_after else deliver_at
    return Times(record.timestamp_us, expires_at or NEVER, deliver_at or AT_ONCE)


def _pairs(record: pb.NewRecord) -> list[tuple[str, bytes | None]]:
    return [
        (header.name, header.value if header.HasField("value") else None)
        for header in record.headers
    ]


# --- outwards --------------------------------------------------------------------------------


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


def add_records(
    response: pb.FetchResponse | pb.SubscribeResponse,
    batch: Batch,
    start: int,
    stop: int,
    *,
    live: bool,
    bytes_max: int,
) -> int:
    """Add records from position `start` on, not beyond `stop`, of `bytes_max` bytes together.

    Return how many. One is added even if it is larger than that. Live records have no offset.
    """
    records = response.records
    count_before, bytes_before = len(records), response.ByteSize()
    mean = _RECORD_OVERHEAD_BYTES + batch.header.section_bytes // max(1, len(batch))
    count = min(stop - start, max(1, bytes_max // mean))
    add = records.add  # half the price of making a message and having it copied in
    for record in batch.records(start, start + count):
        message = add(
            offset=None if live else record.offset,
            key=record.key,
            value=record.value,
            timestamp_us=record.timestamp,
            append_time_us=record.append_time,
        )
        if record.headers:
            for name, value in record.headers:
                message.headers.add(name=name, value=value)
        if record.expires_at != NEVER:
            message.expires_at_us = record.expires_at
        if record.deliver_at:
            message.deliver_at_us = record.deliver_at
    # Where sizes differ much the mean is no help; halving finds a number that fits.
    while count > 1 and response.ByteSize() - bytes_before > bytes_max:
        count //= 2
        del records[count_before + count :]
    return count


def varint(number: int) -> bytes:
    """Return a number that is not negative as protobuf writes it: seven bits a byte."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
