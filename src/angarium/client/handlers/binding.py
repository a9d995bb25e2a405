"""How a handler wants to be called, read from its annotations once, when it is registered.

    async def handle(order: Order) -> None                 the value, as JSON of that shape
    async def handle(value: bytes, record: GroupRecord)    the value as it is, and the record
    def handle(text: str, client: Client)                  text, and the app's own client

A parameter of type `GroupRecord` (or `Record`) gets the record, one of type `Client` the client,
and one other gets the value: `bytes` as it is, `str` as UTF-8, anything else (a dict, a msgspec
Struct, a dataclass, a list of them) from JSON, checked against the annotation. A single parameter
without annotation gets the record.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from angarium.client.client import Client
from angarium.client.groups.records import GroupRecord
from angarium.client.records import Record
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    Source = Callable[[GroupRecord, Client], Any]
    """Finds one argument of a handler."""


def sources_of(function: Callable[..., Any]) -> tuple[Source, ...]:
    """Return where each argument of a handler comes from, in their order.

    Raises `InvalidArgument` for a function that cannot be a handler.
    """
    name = getattr(function, "__qualname__", repr(function))
    parameters = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise InvalidArgument(
            f"{name}: {error}; annotations are looked at when the program runs, so what they name"
            " has to be imported for good and defined at the top of a module"
        ) from None
    bare = [one for one in parameters if one.name not in hints]
    if bare and len(parameters) > 1:
        raise InvalidArgument(
            f"{name}: say what {bare[0].name!r} is: GroupRecord, Client, or the type of the value"
        )
    sources = [_source(hints.get(one.name, GroupRecord)) for one in parameters]
    values = [one for one in sources if one not in (_record, _client)]
    if len(values) > 1:
        raise InvalidArgument(f"{name}: a record has one value, and it asks for {len(values)}")
    return tuple(sources)


def outgoing_value(answer: Any) -> bytes | str:
    """Return what a handler answered, as the value of a record: as it is, or as JSON."""
    if isinstance(answer, bytes | str):
        return answer
    return msgspec.json.encode(answer)


def _source(hint: Any) -> Source:
    if isinstance(hint, type):
        if issubclass(hint, Record):
            return _record
        if issubclass(hint, Client):
            return _client
    if hint is Any or hint is bytes or hint == bytes | None:
        return _bytes
    if hint is str:
        return _text
    decode = msgspec.json.Decoder(hint).decode
    return lambda record, _: decode(record.value or b"")


def _record(record: GroupRecord, _: Client) -> GroupRecord:
    return record


def _client(_: GroupRecord, client: Client) -> Client:
    return client


def _bytes(record: GroupRecord, _: Client) -> bytes | None:
    return record.value


def _text(record: GroupRecord, _: Client) -> str:
    return (record.value or b"").decode()
