"""Records as JSON shows them, both ways, and what each field means.

The OpenAPI document is made from these very classes, so it cannot say anything else than what is
accepted and answered. Bytes that are text travel as text; others as base64 in a field beside it.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from angarium.batch import NEVER
from angarium.doors.intake.outgoing import Outgoing, deadlines
from angarium.errors import InvalidArgument
from angarium.wire.http.messages import JSON

if TYPE_CHECKING:
    from angarium.batch import Record
    from angarium.doors.intake.outgoing import Pairs

INT64_MAX: Final = (1 << 63) - 1
RECORDS_MAX: Final = 100_000
"""Records of one request. More are refused."""

CONTENT_TYPE: Final = "content-type"
"""The header of a record that says what its value is."""

Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Partition = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
Encoding = Annotated[str, Meta(pattern="^(text|base64)$")]
_Milliseconds = Annotated[int, Meta(ge=0, le=1 << 53)]

_exactly: Final = msgspec.json.Encoder(decimal_format="number")


class NewHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A header of a record."""

    name: str
    value: str | None = None
    value_base64: str | None = None
    """For values that are not text."""


class NewRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A record to publish. Without `value` and `value_base64` its value is null."""

    value: Any = None
    """Text is stored as it is; any other JSON value as its JSON text, with content-type."""
    value_base64: str | None = None
    """For values that are not text."""
    key: str | None = None
    key_base64: str | None = None
    headers: list[NewHeader] = []
    timestamp_us: Count = 0
    """The producer's time, in microseconds since 1970; 0: none."""
    expires_at_us: Count = 0
    """When the record is gone; 0: never."""
    deliver_at_us: Count = 0
    """Not before which groups are given it; 0: at once."""
    expires_after_ms: _Milliseconds = 0
    """The same, counted from now."""
    deliver_after_ms: _Milliseconds = 0
    """The same, counted from now."""


class NewRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records to publish together."""

    records: Annotated[list[NewRecord], Meta(min_length=1, max_length=RECORDS_MAX)]


class RecordHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """A header of a record."""

    name: str
    value: str | UnsetType | None = UNSET
    value_base64: str | UnsetType = UNSET
    """Instead of `value`, if that is not text."""


class RecordOut(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A record. Null values and keys are null; a record without an offset was stored nowhere."""

    partition: int
    offset: int | UnsetType = UNSET
    key: str | UnsetType | None = UNSET
    key_base64: str | UnsetType = UNSET
    value: str | UnsetType | None = UNSET
    value_base64: str | UnsetType = UNSET
    """Instead of `value`, if that is not text or base64 was asked for."""
    headers: list[RecordHeader] | UnsetType = UNSET
    timestamp_us: int = 0
    append_time_us: int = 0
    expires_at_us: int | UnsetType = UNSET
    deliver_at_us: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    """Where several topics come together."""


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
