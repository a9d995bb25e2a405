"""How handlers declare what they answer. What they declare also makes the OpenAPI document."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from angarium.api.access import SECRET_FIELD
from angarium.doors.http.forms import form_of, in_json
from angarium.wire.http.messages import JSON, NO_STORE, Response
from angarium.wire.http.router import Route
from angarium.wire.http.strict_json import json_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.wire.http.messages import Answer, Request
    from angarium.wire.http.router import Handler

NOTHING: Final = Response(204)
"""Done, and there is nothing to say about it."""

RememberWay: TypeAlias = "Callable[[Request, Callable[[Request], Answer]], None]"
"""Hears that requests with a head like this one's had better go straight to somebody."""


def remember_no_way(request: Request, handler: Callable[[Request], Answer]) -> None:
    """Have each request find its own way."""
    del request, handler


H = TypeVar("H", bound="Callable[..., Any]")

_DECLARED: Final[dict[object, tuple[dict[str, Any], bool]]] = {}
"""By handler: the route that leads to it, and whether it is a call."""


def route(asked: str, summary: str, *, takes_any: bool = False, **more: Any) -> Callable[[H], H]:
    """Declare a handler that reads a request, its parameters apart, and answers it by itself.

    `asked` is the method and the path. A request with a JSON body may be refused for its media
    type unless it `takes_any`; one that answers nothing is answered 204.
    """

    def declared(handler: H) -> H:
        _DECLARED[handler] = (_fields(asked, summary, takes_any=takes_any, **more), False)
        return handler

    return declared


def call(asked: str, summary: str, **more: Any) -> Callable[[H], H]:
    """Declare a handler that only calls: it is given values and returns one.

    Its annotations are the declaration: an argument `body` is the JSON body, the others are the
    path's variables and what the query may say (or one struct `given`, if they are many), and what
    it returns is the JSON answer.
    """

    def declared(handler: H) -> H:
        signature = inspect.signature(handler)
        given = dict(signature.parameters)
        del given["self"]
        body = given.pop("body", None)
        if "given" in given:
            more["parameters"] = given["given"].annotation
        elif given:
            fields = [
                (one.name, one.annotation)
                if one.default is one.empty
                else (one.name, one.annotation, one.default)
                for one in given.values()
            ]
            more["parameters"] = msgspec.defstruct(
                handler.__name__, fields, frozen=True, forbid_unknown_fields=True
            )
        more["body"] = None if body is None else body.annotation
        more["answer"] = form_of(signature.return_annotation)
        _DECLARED[handler] = (_fields(asked, summary, **more), True)
        return handler

    return declared


def _fields(asked: str, summary: str, *, takes_any: bool = False, **more: Any) -> dict[str, Any]:
    method, path = asked.split(" ")
    errors = set(more.pop("errors", ()))
    if method != "GET":
        errors.add(409)  # the state of things may not allow it
    if more.get("body") is not None and not takes_any:
        errors.add(415)
    more["errors"] = tuple(sorted(errors))
    if more.get("answer") is None and not more.get("other_answers"):
        more.setdefault("status", 204)
    return {"method": method, "path": path, "summary": summary, **more}


def routes_of(source: object) -> list[Route]:
    """Return the routes that lead to the handlers of an object, in their order."""
    found = []
    for name, one in vars(type(source)).items():
        if callable(one) and one in _DECLARED:
            fields, is_call = _DECLARED[one]
            handler = getattr(source, name)
            found.append(Route(handler=_calling(handler, fields) if is_call else handler, **fields))
    return found


def _calling(handler: Callable[..., Awaitable[Any]], fields: dict[str, Any]) -> Handler:
    """Return what answers a request with what a call returns."""
    decoder = None if fields["body"] is None else msgspec.json.Decoder(fields["body"])
    status = fields.get("status", 200)
    signature = inspect.signature(handler)
    is_whole = "given" in signature.parameters
    told = getattr(signature.return_annotation, "__struct_fields__", ())
    headers = NO_STORE if SECRET_FIELD in told else ()

    @wraps(handler)
    async def answered(request: Request, given: msgspec.Struct) -> Response:
        values = {"given": given} if is_whole else msgspec.structs.asdict(given)
        if decoder is not None:
            values["body"] = json_body(request, decoder)
        found = await handler(**values)
        if found is None:
            return NOTHING
        return Response(status, msgspec.json.encode(in_json(found)), JSON, headers)

    return answered
