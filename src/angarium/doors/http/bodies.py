"""What the body of a publish says: records in JSON, or one record as it is.

A value in JSON is text, or any other JSON value, of which the JSON text is stored. A body that is
not JSON is the record's value, and its media type becomes the record's header `content-type`.
CloudEvents in binary mode (`ce-…` headers) keep those headers, with the partition
key as the record's key.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from angarium.doors.http.problems import Refused
from angarium.doors.http.records import outgoing
from angarium.doors.http.strict_json import decoded, is_json
from angarium.doors.http.values import RECORDS_MAX, NewRecord, NewRecords
from angarium.doors.intake import Outgoing
from angarium.doors.intake.packing import Columns
from angarium.errors import InvalidArgument

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


class _Bare(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    value: str | None = None
    key: str | None = None


class _BareRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    records: Annotated[list[_Bare], Meta(min_length=1, max_length=RECORDS_MAX)]


_bare_records: Final = msgspec.json.Decoder(_BareRecords)
# Numbers inside values keep the digits that they came with.
_record: Final = msgspec.json.Decoder(NewRecord, float_hook=Decimal)
_records: Final = msgspec.json.Decoder(NewRecords, float_hook=Decimal)


def read_record(request: Request, key: str | None) -> Outgoing:
    """Return the one record of a request; `key` is its key if the body is taken as it is."""
    if not is_json(request) or request.header(b"ce-specversion") is not None:
        return plain_record(request, key)
    if key is not None:
        raise InvalidArgument("a record in JSON has its key inside")
    body = request.body
    try:
        # With one name at the most, none comes twice.
        record = decoded(body, _record, is_checked=body.count(b":") == 1)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error}; {_AS_IT_IS}") from None
    if type(record.value) is str and body.count(b":") == 1:
        # There is a value and nothing else: the most frequent record of all.
        return Outgoing(record.value.encode())
    return outgoing(record)


def read_records(request: Request) -> Columns | list[Outgoing]:
    """Return the records of a JSON body, as columns if they have nothing but keys and values."""
    body = request.body
    if not is_json(request):
        raise Refused("the body has to be JSON: Content-Type: application/json", status=415)
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
