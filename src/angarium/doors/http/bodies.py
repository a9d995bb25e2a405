"""What the body of a publish says: records in JSON, or one record as it is.

A body that is not JSON is the record's value, and its media type becomes the record's header
`content-type`. CloudEvents in binary mode (`ce-…` headers) keep those headers, with the partition
key as the record's key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

from angarium.doors.http.problems import Refused
from angarium.doors.http.records import Outgoing, outgoing
from angarium.doors.http.server.messages import JSON
from angarium.doors.http.strict_json import check_names, decoded
from angarium.doors.http.values import NewRecord, NewRecords
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from angarium.doors.http.server.messages import Request

HEADER_PREFIX: Final = b"angarium-header-"
"""Request headers that become headers of a record whose body is taken as it is."""

_record: Final = msgspec.json.Decoder(NewRecord)
_records: Final = msgspec.json.Decoder(NewRecords)


def read_record(request: Request, key: str | None) -> Outgoing:
    """Return the one record of a request; `key` is its key if the body is taken as it is."""
    if request.media_type == JSON and request.header(b"ce-specversion") is None:
        if key is not None:
            raise InvalidArgument("a record in JSON has its key inside")
        return outgoing(decoded(request.body, _record))
    return plain_record(request, key)


def read_records(request: Request) -> list[Outgoing]:
    """Return the records of a JSON body; raises what is wrong with it.

    That no name comes twice is seen at a glance in most bodies: each name is there as often as
    there are records that have it. Only where that is not so, for it may stand in a text, too, the
    body is read a second time (`strict_json`).
    """
    body = request.body
    if request.media_type != JSON:
        raise Refused("the body has to be JSON: Content-Type: application/json", status=415)
    records = decoded(body, _records, is_checked=True).records
    values = body.count(b'"value":')
    keys = body.count(b'"key":')
    if (
        # A name and a text have two quotes each, and there is nothing else that has any.
        body.count(b'"') == 2 + 4 * (values + keys)
        and body.count(b'"records":') == 1
        and values == sum([one.value is not None for one in records])
        and keys == sum([one.key is not None for one in records])
    ):
        if not keys:
            return [Outgoing(None if one.value is None else one.value.encode()) for one in records]
        return [
            Outgoing(
                None if one.value is None else one.value.encode(),
                None if one.key is None else one.key.encode(),
            )
            for one in records
        ]
    check_names(body)
    return [outgoing(one) for one in records]


def plain_record(request: Request, key: str | None) -> Outgoing:
    """Return the record whose value is the body as it is, with the headers that belong to it."""
    headers: list[tuple[str, bytes | None]] = []
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
