"""What a request to publish says: its records, and what it is recognised by if it comes again.

A value in JSON is text, or any other JSON value, whose JSON text is stored. A body that is not JSON
is the record's value, and its media type becomes the record's header `content-type`. CloudEvents in
binary mode (`ce-…` headers) keep those headers, with the partition key as the record's key.

`Idempotency-Key` is any word, such as a UUID (`intake.once`); the same key with another body is
refused. `Angarium-Sequence: NAME:NUMBER` is for clients that count: a partition remembers the last
number of a name for good, not every key of a day.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from angarium.doors.http.record_json import RECORDS_MAX, NewRecord, NewRecords, outgoing
from angarium.doors.intake import Outgoing
from angarium.doors.intake.once import Once
from angarium.doors.intake.packing import Columns
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode
from angarium.wire.http.messages import JSON
from angarium.wire.http.strict_json import decoded, is_json, not_json

if TYPE_CHECKING:
    from angarium.wire.http.messages import Request

CLOUD_EVENT_NEEDS: Final = ("ce-id", "ce-source", "ce-type")
"""What makes an event one, besides the version that announces it."""

HEADER_PREFIX: Final = b"angarium-header-"
"""Request headers that become headers of a record whose body is taken as it is."""

_AS_IT_IS: Final = (
    "a record in JSON is an object with a value, and perhaps a key and headers; to store a body as"
    " it is, send it with another Content-Type, such as text/plain"
)

KEY_BYTES_MAX: Final = 255
"""Length of a key. A longer one is refused."""

SEQUENCE_HEADER: Final = b"angarium-sequence"
KEY_HEADER: Final = b"idempotency-key"

PRODUCER_PREFIX: Final = "http."
"""Producers of this door have names of their own, so that nobody fences them by accident."""

_NUMBERED: Final = re.compile(r"([A-Za-z0-9._-]{1,100}):([0-9]{1,18})")
_content: Final = msgspec.msgpack.Encoder().encode


class Numbered(NamedTuple):
    """A producer's name and the number it gave to a request."""

    producer: str
    number: int


class _Bare(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    value: str | None = None
    key: str | None = None


class _OnlyValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    value: str


class _BareRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    records: Annotated[list[_Bare], Meta(min_length=1, max_length=RECORDS_MAX)]


_only_value: Final = msgspec.json.Decoder(_OnlyValue).decode
_bare_records: Final = msgspec.json.Decoder(_BareRecords)
# Numbers inside values keep the digits that they came with.
_record: Final = msgspec.json.Decoder(NewRecord, float_hook=Decimal)
_records: Final = msgspec.json.Decoder(NewRecords, float_hook=Decimal)


def read_record(request: Request, key: str | None) -> Outgoing:
    """Return the one record of a request; `key` is its key if the body is taken as it is."""
    if not is_json(request) or b"ce-specversion" in request.named:
        return plain_record(request, key)
    if key is not None:
        raise InvalidArgument("a record in JSON has its key inside")
    return json_record(request.body)


def json_record(body: bytes) -> Outgoing:
    """Return the record that is a JSON body."""
    # With one name at the most, none comes twice.
    has_one_name = body.count(b":") == 1
    try:
        if has_one_name:
            try:
                # There is a value and nothing else: the most frequent record of all.
                return Outgoing(_only_value(body).value.encode())
            except (msgspec.MsgspecError, UnicodeDecodeError):
                pass  # it is something else, or the general way says what is wrong with it
        record = decoded(body, _record, is_checked=has_one_name)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error}; {_AS_IT_IS}") from None
    return outgoing(record)


def read_records(request: Request) -> Columns | list[Outgoing]:
    """Return the records of a JSON body, as columns if they have nothing but keys and values."""
    body = request.body
    if not is_json(request):
        raise not_json()
    columns = _read_columns(body)
    if columns is not None:
        return columns
    return [outgoing(one) for one in decoded(body, _records).records]


def _read_columns(body: bytes) -> Columns | None:
    """Return records that have texts for values and perhaps keys; None if they are not like that.

    That no name comes twice is seen at a glance then: each name is there as often as there are
    records that have it. A body where that is not so, for it may stand in a text, too, is read on
    the general way.
    """
    try:
        records = _bare_records.decode(body).records
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    values = [one.value for one in records]
    keys = [one.key for one in records]
    no_keys = keys.count(None)
    with_key = len(keys) - no_keys
    if (
        None in values
        # A name and a text have two quotes each, and there is nothing else that has any.
        or body.count(b'"') != 2 + 4 * (len(values) + with_key)
        or body.count(b'"records":') != 1
        or body.count(b'"value":') != len(values)
        or body.count(b'"key":') != with_key
    ):
        return None
    return Columns(
        [one.encode() for one in values if one is not None],
        [None if one is None else one.encode() for one in keys] if with_key else None,
    )


def plain_record(request: Request, key: str | None) -> Outgoing:
    """Return the record whose value is the body as it is, with the headers that belong to it."""
    headers: list[tuple[str, bytes | None]] = []
    if request.header(b"ce-specversion") is not None:
        for name in CLOUD_EVENT_NEEDS:
            if not request.header(name.encode()):
                raise InvalidArgument(f"a CloudEvent in binary mode has a header {name}")
    kind = request.header(b"content-type")
    if kind is not None:
        headers.append(("content-type", kind))
    for name, value in request.headers_with(b"ce-"):
        # CloudEvents quote what is not ASCII (their HTTP binding, section 3.1.3.2).
        text = unquote(value.decode("latin-1")) if b"%" in value else value.decode("latin-1")
        headers.append((name, text.encode()))
        if name == "ce-partitionkey" and key is None:
            key = text
    for name, value in request.headers_with(HEADER_PREFIX):
        headers.append((name[len(HEADER_PREFIX) :], value))
    return Outgoing(request.body, None if key is None else key.encode(), tuple(headers))


def is_bare(request: Request, key: str | None) -> bool:
    """Whether a request's head says that the body is a record in JSON, and nothing else of it."""
    named = request.named
    return (
        named.get(b"content-type") == JSON
        and key is None
        and not any(one in named for one in (b"ce-specversion", KEY_HEADER, SEQUENCE_HEADER))
    )


# --- what comes again ---------------------------------------------------------------------------


def once_of(
    request: Request, mode: DeliveryMode | None, record: Outgoing | None = None
) -> Once | None:
    """Return what the request is recognised by, if it has a key; raises `InvalidArgument`.

    Key and headers of a record may come beside the body, and are as much of what was asked.
    """
    key = request.named.get(KEY_HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= KEY_BYTES_MAX or not key.isascii():
        raise InvalidArgument(f"an Idempotency-Key has 1 to {KEY_BYTES_MAX} characters of ASCII")
    if mode is DeliveryMode.PERFORMANCE:
        raise InvalidArgument(
            "mode performance stores nothing, so nobody could tell that a key came before"
        )
    beside = () if record is None else (record.key, record.headers)
    return Once(key, _content((beside, request.body)))


def numbered_of(request: Request, mode: DeliveryMode | None) -> Numbered | None:
    """Return the number that a client gave to its request, if any; raises `InvalidArgument`."""
    if SEQUENCE_HEADER not in request.named:
        return None
    fits = _NUMBERED.fullmatch(request.named[SEQUENCE_HEADER].decode("latin-1"))
    if fits is None:
        raise InvalidArgument("Angarium-Sequence is NAME:NUMBER, and the number grows")
    if mode not in (None, DeliveryMode.CONSISTENT):
        raise InvalidArgument("a record with a number of its own is stored in mode consistent")
    return Numbered(f"{PRODUCER_PREFIX}{fits[1]}", int(fits[2]))
