"""Which request goes where: routes, and the router that finds the one of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from angarium.errors import InvalidArgument, NotFound
from angarium.wire.http.origins import check_no_link
from angarium.wire.http.request_reader import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.wire.http.messages import Answer, Request

REMEMBERED_MAX: Final = 4_096
"""Targets of POST requests whose way is remembered. At the bound all are forgotten."""

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
    changes: Callable[[Any], bool] | None = None
    """Of a GET: whether with these parameters it changes something. Then a link on a page of
    another origin must not lead to it."""
    tag: str = ""
    """Under which heading the OpenAPI document shows it; empty: not at all."""


class _Branch:
    """A part of a path: what may follow it."""

    __slots__ = ("children", "routes", "variable")

    def __init__(self) -> None:
        self.children: dict[str, _Branch] = {}
        self.variable: tuple[str, _Branch] | None = None
        self.routes: dict[bytes, Route] = {}


class Router:
    """Finds the route of a request and reads its parameters."""

    def __init__(self, routes: Iterable[Route], *, lists: str) -> None:
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
        if route.changes is not None and route.changes(parameters):
            check_no_link(request)
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
            raise RequestRefused(
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
