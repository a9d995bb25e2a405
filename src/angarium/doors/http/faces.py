"""What the HTTP door is to one principal: its brokers, its intake, and which request goes where."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from angarium.doors.callers import counted_of
from angarium.doors.feeds.tails import Tails
from angarium.doors.http.access_routes import AccessRoutes
from angarium.doors.http.dead_letter_routes import DeadLetterRoutes
from angarium.doors.http.events import Streaming
from angarium.doors.http.fetch_routes import FetchRoutes
from angarium.doors.http.front_page import FrontPage
from angarium.doors.http.graphql import QueryParameters
from angarium.doors.http.group_routes import GroupRoutes
from angarium.doors.http.observing import Observing
from angarium.doors.http.operating_routes import OperatingRoutes
from angarium.doors.http.publish_routes import PublishRoutes
from angarium.doors.http.quota_routes import JoinTokenRoutes, QuotaRoutes
from angarium.doors.http.routing import route, routes_of
from angarium.doors.http.socket_logins import log_in_of
from angarium.doors.http.sockets import Session
from angarium.doors.http.topic_routes import TopicRoutes
from angarium.doors.intake import Intake
from angarium.errors import Unauthenticated
from angarium.security.credentials import MISSING
from angarium.wire.http.admission import is_from_a_page
from angarium.wire.http.messages import JSON, Response
from angarium.wire.http.router import NoParameters, Route, Router

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.api import Broker, GroupBroker
    from angarium.api.administration import AdministrationBroker
    from angarium.api.dead_letters import LettersOfTopic
    from angarium.doors.http.door import HttpDoor
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint
    from angarium.doors.http.publish_routes import SequencedBroker
    from angarium.wire.http.messages import Answer, Request


class Behind(NamedTuple):
    """What lies behind the door for one principal; what is None is not served."""

    broker: Broker
    groups: GroupBroker | None = None
    sequenced: SequencedBroker | None = None
    letters: Callable[[str], LettersOfTopic] | None = None
    measuring: Callable[[], Awaitable[object]] | None = None
    """Raises if the principal may not read metrics."""
    access: AdministrationBroker | None = None


class LogIn(Protocol):
    """Finds out who a socket's client is."""

    async def __call__(self, header: str | None, *, source: str) -> HttpFace:
        """Return what serves who brings this; raises `Unauthenticated`. None: it brings nothing."""
        ...


class HttpFace:
    """Serves the requests of one principal; with authentication off, everybody's."""

    def __init__(
        self,
        door: HttpDoor,
        behind: Behind,
        *,
        log_in: LogIn | None = None,
        is_nobodys: bool = False,
    ) -> None:
        """`log_in` returns the face of who says in the first message of a socket who it is. Nobody
        has to; who is known by a certificate may, and is that one then."""
        self._door = door
        self._behind = behind
        self._log_in = log_in
        self._is_nobodys = is_nobodys
        self.intake = Intake(behind.broker)
        self.groups = behind.groups
        self.counted = counted_of(behind.broker)
        """Who counts the requests and streams."""
        self._graphql: GraphqlEndpoint | None = None
        self.router = Router(self._routes(), lists="GET /v1/openapi.json lists all")

    def _routes(self) -> list[Route]:
        door, behind = self._door, self._behind
        broker = behind.broker
        observing = Observing(
            broker,
            door.facts,
            lambda: door.server,
            requests=door.requests,
            measuring=behind.measuring,
        )
        streaming = Streaming(
            broker,
            behind.groups,
            Tails(broker, door.closings),
            door.closings,
            heartbeat_s=door.limits.heartbeat_seconds,
            counted=self.counted,
        )
        parts: list[object] = [
            PublishRoutes(
                self.intake,
                door.leader_hint,
                sequenced=behind.sequenced,
                remember_way=self._remember_way,
            ),
            *(FetchRoutes(broker), streaming),
            *(TopicRoutes(broker, self.intake.shapes), observing),
        ]
        if behind.groups is not None:
            parts.append(GroupRoutes(behind.groups))
        if behind.letters is not None:
            parts.append(DeadLetterRoutes(behind.letters))
        if behind.access is not None:
            parts.append(AccessRoutes(behind.access))
            parts += QuotaRoutes(behind.access), JoinTokenRoutes(behind.access)
            parts.append(OperatingRoutes(behind.access))
        found = [one for part in (*parts, self) for one in routes_of(part)]
        front = FrontPage(found)
        return [*found, Route(method="GET", path="/", handler=front.show, summary="Links.")]

    def _remember_way(self, request: Request, handler: Callable[[Request], Answer]) -> None:
        """Send requests with this head straight to `handler` from now on, if all that is looked at
        before is the head: where nobody has to say who it is, and no page asks."""
        if self._log_in is None and not is_from_a_page(request):
            request.head.way = handler

    @route("GET /v1/socket", "A WebSocket: subscribe, consume, settle, publish.")
    async def _socket(self, request: Request, _: NoParameters) -> None:
        await Session(
            request,
            self,
            self._door.closings,
            log_in=log_in_of(request, self._log_in),
            is_known=not self._is_nobodys,
        ).run()

    # --- GraphQL: loaded when somebody first asks, for many nodes never hear of it ------------

    async def endpoint(self) -> GraphqlEndpoint:
        """Return what serves GraphQL."""
        # In a thread: it takes a moment, in which the loop has other things to do.
        endpoint = await asyncio.to_thread(_import_graphql)
        if self._graphql is None:
            self._graphql = endpoint(
                self.intake,
                self.groups,
                self._door.closings,
                access=self._behind.access,
                log_in=self._log_in_to_graphql(),
                counted=self.counted,
                is_known=not self._is_nobodys,
            )
        return self._graphql

    async def _first(self, answered: Callable[[GraphqlEndpoint], Answer]) -> Response | None:
        answer = answered(await self.endpoint())
        return await answer if isinstance(answer, Coroutine) else answer

    def _log_in_to_graphql(self) -> Callable[..., Awaitable[GraphqlEndpoint]] | None:
        if self._log_in is None:
            return None
        log_in = self._log_in

        async def logged_in(header: str, *, source: str) -> GraphqlEndpoint:
            face = await log_in(header, source=source)
            return await face.endpoint()

        return logged_in

    @route("POST /graphql", "GraphQL.", parameters=QueryParameters)
    def _graphql_post(self, request: Request, given: QueryParameters) -> Answer:
        if self._graphql is None:
            return self._first(lambda endpoint: endpoint.post(request, given))
        self._remember_way(request, partial(self._graphql.post, given=given))
        return self._graphql.post(request, given)

    @route(
        "GET /graphql",
        "GraphQL queries, WebSockets, and a page to try it out.",
        parameters=QueryParameters,
    )
    def _graphql_get(self, request: Request, given: QueryParameters) -> Answer:
        if self._graphql is None:
            return self._first(lambda endpoint: endpoint.get(request, given))
        return self._graphql.get(request, given)

    @route("GET /graphql/schema", "The schema.")
    def _graphql_schema(self, request: Request, _: NoParameters) -> Answer:
        if self._graphql is None:
            return self._first(lambda endpoint: endpoint.sdl(request))
        return self._graphql.sdl(request)

    @route("GET /v1/openapi.json", "The OpenAPI document: every request, every field.")
    def _openapi(self, _: Request, __: NoParameters) -> Response:
        return Response(200, self._door.document, JSON)


class _Nobodys:
    """The broker of who has not said who it is: whatever is asked of it is refused."""

    counted = None
    region = ""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: object, **__: object) -> Any:
            raise Unauthenticated(MISSING)

        return refuse


def nobodys() -> Behind:
    """Return what lies behind the door for who has not said who it is: nothing."""
    nobody = cast(Any, _Nobodys())
    return Behind(nobody, nobody, nobody, nobody.dead_letters, nobody.measuring, nobody)


def _import_graphql() -> type[GraphqlEndpoint]:
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint  # noqa: PLC0415

    return GraphqlEndpoint
