"""Records and batches, to and from JSON and plain bodies."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from angarium.batch import NEVER
from angarium.doors.http.values import RecordHeader, RecordOut
from angarium.doors.intake.outgoing import Outgoing, deadlines
from angarium.errors import InvalidArgument
from angarium.wire.http.messages import JSON

if TYPE_CHECKING:
    from angarium.batch import Record
    from angarium.doors.http.values import NewHeader, NewRecord
    from angarium.doors.intake.outgoing import Pairs


CONTENT_TYPE: Final = "content-type"
"""The header of a record that says what its value is."""

_exactly: Final = msgspec.json.Encoder(decimal_format="number")


# --- inwards ---------------------------------------------------------------------------------


def outgoing(record: NewRecord) -> Outgoing:
    """Return the record that JSON describes; raises `InvalidArgument`."""
    headers: Pairs = ()
    if record.headers:
        headers = tuple([_pair(one) for one in record.headers])
    if record.value is None or isinstance(record.value, str):
        value = bytes_of("value", record.value, record.value_base64)
    else:
        value = _json_text(record)
        if not any(name.lower() == CONTENT_TYPE for name, _ in headers):
            headers = (*headers, (CONTENT_TYPE, JSON))
    key = None
    if record.key is not None or record.key_base64 is not None:
        key = bytes_of("key", record.key, record.key_base64)
    after = (record.expires_after_ms, record.deliver_after_ms)
    at = deadlines(record.expires_at_us, record.deliver_at_us, *after)
    return Outgoing(value, key, headers, record.timestamp_us, *at)


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


def _json_text(record: NewRecord) -> bytes:
    """Return a value that is no text as JSON writes it, without spaces."""
    if record.value_base64 is not None:
        raise InvalidArgument("value and value_base64 exclude each other")
    return _exactly.encode(record.value)


def _pair(header: NewHeader) -> tuple[str, bytes | None]:
    return header.name, bytes_of("value", header.value, header.value_base64)


# --- outwards --------------------------------------------------------------------------------


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
