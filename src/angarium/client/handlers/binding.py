"""How a handler wants to be called, read from its annotations once, when it is registered.

    async def handle(order: Order) -> None                 the value, as JSON of that shape
    async def handle(value: bytes, record: GroupRecord)    the value as it is, and the record
    def handle(text: str, client: Client)                  text, and the app's own client

A parameter of type `GroupRecord` (or `Record`) gets the record, one of type `Client` the client,
and one other gets the value: `bytes` as it is, `str` as UTF-8, anything else (a dict, a msgspec
Struct, a dataclass, a Pydantic model, a list of them) from JSON, checked against the annotation. A
single parameter without annotation gets the record.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
import msgspec.inspect

from angarium.client.client import Client
from angarium.client.groups.group_records import GroupRecord
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
    parameters = _parameters(function, name)
    try:
        hints = _hints(function)
    except NameError as error:
        raise InvalidArgument(
            f"{name}: {error}; annotations are looked at when the program runs, so import"
            " what they name without TYPE_CHECKING, and define it at the top of a module"
        ) from None
    bare = [one for one in parameters if one.name not in hints]
    if bare and len(parameters) > 1:
        raise InvalidArgument(
            f"{name}: say what {bare[0].name!r} is: GroupRecord, Client, or the type of the value"
        )
    sources = [_source(hints.get(one.name, GroupRecord), name) for one in parameters]
    values = [one for one in sources if one not in (_record, _client)]
    if len(values) > 1:
        raise InvalidArgument(f"{name}: a record has one value, and it asks for {len(values)}")
    return tuple(sources)


def outgoing_value(answer: Any) -> bytes | str:
    """Return what a handler answered, as the value of a record: as it is, or as JSON."""
    if isinstance(answer, bytes | str):
        return answer
    return msgspec.json.encode(answer, enc_hook=_plain)


def answers_nothing(function: Callable[..., Any]) -> bool:
    """Tell whether a function says of itself that it returns nothing."""
    with suppress(NameError):
        return _hints(function).get("return") is type(None)
    return False


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidArgument(
            f"{name}: it is a generator; a handler returns one value for publish_to"
        )
    if isinstance(function, type) or not callable(function):
        raise InvalidArgument(f"{name}: a handler is a function")
    found = inspect.signature(function).parameters.values()
    for one in found:
        if one.kind is one.KEYWORD_ONLY and one.default is one.empty:
            raise InvalidArgument(f"{name}: nothing fills {one.name!r}; declare it before the *")
    return [one for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _hints(function: Any) -> dict[str, Any]:
    while isinstance(function, partial):
        function = function.func
    is_plain = inspect.isfunction(function) or inspect.ismethod(function)
    return get_type_hints(function if is_plain else function.__call__)


def _source(hint: Any, name: str) -> Source:
    if isinstance(hint, type):
        if issubclass(hint, Record):
            return _record
        if issubclass(hint, Client):
            return _client
    if hint is Any or hint is bytes or hint == bytes | None:
        return _bytes
    if hint is str:
        return _text
    decode = _decoder(hint, name)
    return lambda record, _: decode(record.value or b"")


def _decoder(hint: Any, name: str) -> Callable[[bytes], Any]:
    """Return what reads JSON of that shape; whatever nobody can read is refused here and now."""
    try:
        if not _has_foreign_part(msgspec.inspect.type_info(hint)):
            return msgspec.json.Decoder(hint).decode
        # A program that names a model has imported Pydantic; a base install does not have it.
        if "pydantic" in sys.modules:
            read: Callable[[bytes], Any] = sys.modules["pydantic"].TypeAdapter(hint).validate_json
            return read
        why = "it is no type that JSON has"
    except Exception as error:
        why = str(error).partition("\n")[0]
    shown = getattr(hint, "__qualname__", hint)
    raise InvalidArgument(
        f"{name}: a value cannot be read as {shown}: {why}. Ask for bytes, str, a dict, a"
        " dataclass, a msgspec.Struct or a Pydantic model"
    )


def _has_foreign_part(shape: Any) -> bool:
    """Tell whether msgspec would have to ask somebody else how to make a part of `shape`."""
    waiting, seen = [shape], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, msgspec.inspect.CustomType):
            return True
        if isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field) and id(one) not in seen:
            seen.add(id(one))
            waiting += [getattr(one, name) for name in one.__struct_fields__]
    return False


def _plain(answer: Any) -> Any:
    """Return a Pydantic model in an answer as what JSON has."""
    if hasattr(answer, "model_dump"):
        return answer.model_dump(mode="json")
    raise NotImplementedError(f"{type(answer).__qualname__} cannot be written as JSON")


def _record(record: GroupRecord, _: Client) -> GroupRecord:
    return record


def _client(_: GroupRecord, client: Client) -> Client:
    return client


def _bytes(record: GroupRecord, _: Client) -> bytes | None:
    return record.value


def _text(record: GroupRecord, _: Client) -> str:
    return (record.value or b"").decode()
