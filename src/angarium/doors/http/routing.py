"""Which request goes where. One table serves requests and makes the OpenAPI document."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from angarium.doors.http.forms import form_of, in_json
from angarium.doors.http.problems import Refused
from angarium.doors.http.strict_json import json_body
from angarium.errors import InvalidArgument, NotFound
from angarium.wire.http.messages import JSON, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from angarium.wire.http.messages import Answer, Request

REMEMBERED_MAX: Final = 4_096
"""Targets of POST requests whose way is remembered. At the bound all are forgotten."""

NOTHING: Final = Response(204)
"""Done, and there is nothing to say about it."""

Handler: TypeAlias = "Callable[[Request, Any], Answer]"


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request that takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One thing that can be asked for."""

    method: str
    path: str
    """With variables in braces: /v1/topics/{topic}"""
    handler: Handler
    parameters: type[msgspec.Struct] = NoParameters
    """Its fields are the path's variables and what the query may say."""
    summary: str
    body: type | None = None
    """What a JSON body has to be."""
    other_bodies: tuple[str, ...] = ()
    """Media types that are taken as they are."""
    answer: type | None = None
    """What the JSON answer is."""
    other_answers: tuple[str, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses besides those that every request may have."""
    headers: tuple[tuple[str, str], ...] = ()
    """Request headers that matter, and what they mean."""
    tag: str = ""
    """Under which heading the OpenAPI document shows it; empty: not at all."""


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
    if more.get("body") is not None and not takes_any:
        more["errors"] = tuple(sorted({*more.get("errors", ()), 415}))
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
    is_whole = "given" in inspect.signature(handler).parameters

    @wraps(handler)
    async def answered(request: Request, given: msgspec.Struct) -> Response:
        values = {"given": given} if is_whole else msgspec.structs.asdict(given)
        if decoder is not None:
            values["body"] = json_body(request, decoder)
        found = await handler(**values)
        if found is None:
            return NOTHING
        return Response(status, msgspec.json.encode(in_json(found)), JSON)

    return answered


class _Branch:
    """A part of a path: what may follow it."""

    __slots__ = ("children", "routes", "variable")

    def __init__(self) -> None:
        self.children: dict[str, _Branch] = {}
        self.variable: tuple[str, _Branch] | None = None
        self.routes: dict[bytes, Route] = {}


class Router:
    """Finds the route of a request and reads its parameters."""

    def __init__(
        self, routes: Iterable[Route], *, lists: str = "GET /v1/openapi.json lists all"
    ) -> None:
        """Take the routes; `lists` says where to find them, in the answer to an unknown path."""
        self.routes = tuple(routes)
        self._nothing = f"there is nothing at this path; {lists}"
        self._root = _Branch()
        self._remembered: dict[bytes, tuple[Route, msgspec.Struct]] = {}
        for route in self.routes:
            self._add(route)

    def dispatch(self, request: Request) -> Answer:
        """Have a request handled; raises what is wrong with it."""
        if request.method == b"POST":
            # Those who publish say the same again and again.
            known = self._remembered.get(request.target)
            if known is None:
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                known = self._remembered[request.target] = self._found(request)
            return known[0].handler(request, known[1])
        route, parameters = self._found(request)
        return route.handler(request, parameters)

    def _found(self, request: Request) -> tuple[Route, msgspec.Struct]:
        route, given = self._match(request)
        query = request.query()
        if not given.keys().isdisjoint(query):
            raise InvalidArgument("the query repeats a part of the path")
        try:
            return route, msgspec.convert({**given, **query}, route.parameters, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidArgument(f"the parameters do not fit: {error}") from None

    def _match(self, request: Request) -> tuple[Route, dict[str, str]]:
        segments = request.segments()
        branch = self._root
        given: dict[str, str] = {}
        if segments is None:
            raise NotFound(self._nothing)
        for segment in segments:
            child = branch.children.get(segment)
            if child is None and branch.variable is not None and segment:
                name, child = branch.variable
                given[name] = segment
            if child is None:
                raise NotFound(self._nothing)
            branch = child
        method = b"GET" if request.method == b"HEAD" else request.method
        route = branch.routes.get(method)
        if route is None:
            if not branch.routes:
                raise NotFound(self._nothing)
            allowed = b", ".join(sorted(branch.routes))
            raise Refused(
                f"this path takes {allowed.decode()}", status=405, headers=((b"Allow", allowed),)
            )
        return route, given

    def _add(self, route: Route) -> None:
        branch = self._root
        for part in route.path[1:].split("/"):
            if part.startswith("{"):
                if branch.variable is None:
                    branch.variable = (part[1:-1], _Branch())
                name, branch = branch.variable
                assert name == part[1:-1], "one variable, one name"
            else:
                branch = branch.children.setdefault(part, _Branch())
        assert route.method.encode() not in branch.routes
        branch.routes[route.method.encode()] = route
