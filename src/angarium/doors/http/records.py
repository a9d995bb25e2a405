"""Records and batches, to and from JSON and plain bodies."""

from __future__ import annotations

import base64
import binascii
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET, UnsetType

from angarium.batch import AT_ONCE, NEVER, Batch, encode, encode_one
from angarium.batch.deadlines import outside
from angarium.doors.http.values import RecordHeader, RecordOut
from angarium.errors import CorruptData, InvalidArgument, InvalidBatch
from angarium.ids import NO_PRODUCER, Epoch, Offset, ProducerId, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.batch import Record
    from angarium.batch.deadlines import Ranges
    from angarium.doors.http.values import NewHeader, NewRecord
    from angarium.ids import Buffer

Pairs = tuple[tuple[str, bytes | None], ...]


class Outgoing(NamedTuple):
    """A record on its way in."""

    value: bytes | None
    key: bytes | None = None
    headers: Pairs = ()
    timestamp: int = 0
    expires_at: int = NEVER
    deliver_at: int = AT_ONCE

    @property
    def is_plain(self) -> bool:
        """Whether nothing about it could be refused that is right about its neighbours."""
        return self.expires_at == NEVER and self.deliver_at == AT_ONCE


class Identity(NamedTuple):
    """Who produced a batch, and which of its records is the first in it."""

    producer_id: ProducerId = NO_PRODUCER
    epoch: Epoch = Epoch(0)
    sequence: Sequence = Sequence(0)


NOBODY: Final = Identity()
FIRST: Final = Offset(0)


# --- inwards ---------------------------------------------------------------------------------


def outgoing(record: NewRecord) -> Outgoing:
    """Return the record that JSON describes; raises `InvalidArgument`."""
    value = bytes_of("value", record.value, record.value_base64)
    key = None
    if record.key is not None or record.key_base64 is not None:
        key = bytes_of("key", record.key, record.key_base64)
    headers: Pairs = ()
    if record.headers:
        headers = tuple([_pair(one) for one in record.headers])
    expires_at, deliver_at = record.expires_at_us, record.deliver_at_us
    if record.expires_after_ms or record.deliver_after_ms:
        now = time.time_ns() // 1_000
        if record.expires_after_ms:
            expires_at = now + 1_000 * record.expires_after_ms
        if record.deliver_after_ms:
            deliver_at = now + 1_000 * record.deliver_after_ms
    return Outgoing(
        value, key, headers, record.timestamp_us, expires_at or NEVER, deliver_at or AT_ONCE
    )


def single_batch(record: Outgoing, identity: Identity = NOBODY) -> bytearray:
    """Return a batch of this one record."""
    producer_id, epoch, sequence = identity
    if record.headers:
        return encode(
            (record.value,),
            keys=(record.key,),
            headers=(record.headers,),
            timestamps=record.timestamp,
            expires_at=record.expires_at,
            deliver_at=record.deliver_at,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
        )
    return encode_one(
        record.value,
        key=record.key,
        timestamp=record.timestamp,
        expires_at=record.expires_at,
        deliver_at=record.deliver_at,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
    )


def bytes_of(what: str, text: str | None, in_base64: str | None) -> bytes | None:
    """Return bytes that came as text or in base64; raises `InvalidArgument`."""
    if in_base64 is None:
        return None if text is None else text.encode()
    if text is not None:
        raise InvalidArgument(f"{what} and {what}_base64 exclude each other")
    try:
        return base64.b64decode(in_base64, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgument(f"{what}_base64 is not base64") from None


def _pair(header: NewHeader) -> tuple[str, bytes | None]:
    return header.name, bytes_of("value", header.value, header.value_base64)


# --- outwards --------------------------------------------------------------------------------


def readable(buffer: Buffer, *, topic: str, partition: int) -> Batch:
    """Return a stored batch after checking all of it: its section may never have been opened."""
    try:
        return Batch.parse(buffer, compacted=True)
    except InvalidBatch as error:
        raise CorruptData(
            f"a stored batch of {topic}/{partition} cannot be read: {error}"
        ) from error


def records_of(
    batch: Batch, *, from_offset: Offset = FIRST, expired: Ranges = (), live: bool = False
) -> Iterator[Record]:
    """Yield a batch's records from an offset on, without those that have expired."""
    if live:
        yield from batch.records(0, len(batch))
        return
    if not expired:
        yield from batch.records(batch.position_of(from_offset), len(batch))
        return
    for first, past in outside(expired, start=from_offset, stop=batch.next_offset):
        yield from batch.slice(Offset(first), Offset(past))


def record_out(
    record: Record, *, partition: int, in_base64: bool, live: bool = False, topic: str = ""
) -> RecordOut:
    """Return a record as JSON shows it."""
    key, key64 = _shown(record.key, in_base64=in_base64)
    value, value64 = _shown(record.value, in_base64=in_base64)
    return RecordOut(
        partition=partition,
        offset=UNSET if live else record.offset,
        key=key,
        key_base64=key64,
        value=value,
        value_base64=value64,
        headers=[_header(one, in_base64=in_base64) for one in record.headers]
        if record.headers
        else UNSET,
        timestamp_us=record.timestamp,
        append_time_us=record.append_time,
        expires_at_us=UNSET if record.expires_at == NEVER else record.expires_at,
        deliver_at_us=record.deliver_at or UNSET,
        topic=topic or UNSET,
    )


def _shown(
    data: bytes | None, *, in_base64: bool
) -> tuple[str | UnsetType | None, str | UnsetType]:
    """Return the bytes for the field that takes text, and for the one that takes base64."""
    if data is None:
        return None, UNSET
    if not in_base64:
        try:
            return data.decode(), UNSET
        except UnicodeDecodeError:
            pass
    return UNSET, base64.b64encode(data).decode()


def _header(pair: tuple[str, bytes | None], *, in_base64: bool) -> RecordHeader:
    name, content = pair
    value, value64 = _shown(content, in_base64=in_base64)
    return RecordHeader(name=name, value=value, value_base64=value64)
