"""Records and batches, to and from protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import Delivery
from angarium.api.stored_records import batches_of
from angarium.batch import NEVER
from angarium.doors.grpc.wire_format import bytes_tag, varint
from angarium.doors.intake.outgoing import Outgoing, deadlines
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from angarium.api import Handed
    from angarium.batch import Batch
    from angarium.doors.feeds.credit import Credit
    from angarium.doors.intake.outgoing import Pairs
    from angarium.ids import Buffer


_VALUE: Final = bytes_tag(pb.NewRecord.VALUE_FIELD_NUMBER)
_BATCHES: Final = bytes_tag(pb.SubscribeResponse.BATCHES_FIELD_NUMBER)

_RECORD_OVERHEAD_BYTES: Final = 32
"""What a record's message has besides its data: tags, lengths, an offset, two times."""


# --- inwards ---------------------------------------------------------------------------------


def outgoing(record: pb.NewRecord) -> Outgoing:
    """Return the record that a message describes; times counted from "now" begin at this moment."""
    value = record.value if record.HasField("value") else None
    if value is not None and record.ByteSize() == len(_VALUE + varint(len(value))) + len(value):
        # There is a value and nothing else: the most frequent record of all.
        return Outgoing(value)
    key = record.key if record.HasField("key") else None
    headers: Pairs = ()
    if pairs := record.headers:
        headers = tuple([(one.name, one.value if one.HasField("value") else None) for one in pairs])
    after = (record.expires_after_ms, record.deliver_after_ms)
    at = deadlines(record.expires_at_us, record.deliver_at_us, *after)
    return Outgoing(value, key, headers, record.timestamp_us, *at)


# --- outwards --------------------------------------------------------------------------------


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


async def filled(
    sent: Delivery | Handed,
    rows: Callable[[Batch], Iterable[tuple[int, int]]],
    *,
    live: bool,
    credit: Credit,
    bytes_max: int,
) -> AsyncIterator[pb.SubscribeResponse]:
    """Yield messages with the records that `rows` finds, as far as there is credit.

    Each has about `bytes_max` bytes at the most. They end early if no more credit will come.
    """
    for batch in batches_of(sent):
        for first, stop in rows(batch):
            row = first
            while row < stop and await credit.some():
                message = pb.SubscribeResponse(topic=sent.topic, partition=sent.partition)
                say_who_served(message, sent)
                past = min(stop, row + credit.left) if credit.is_bounded else stop
                count = add_records(message, batch, row, past, live=live, bytes_max=bytes_max)
                row += count
                credit.left -= count
                yield message


def say_who_served(message: pb.SubscribeResponse, sent: Delivery | Handed) -> None:
    """Say whose replica was read, if it was that of a node that has a region."""
    if isinstance(sent, Delivery) and sent.region:
        message.node, message.region = sent.node, sent.region
        message.staleness_ms = sent.staleness_ms


def with_batches(message: pb.SubscribeResponse, batches: Sequence[Buffer]) -> bytes:
    """Return a message with whole batches in it.

    Protobuf messages may be put together from parts. So the batches are copied once, and not into a
    message and out of it again.
    """
    data = message.SerializeToString()
    if not batches:
        return data
    return b"".join((data, _BATCHES, varint(sum(map(len, batches))), *batches))
