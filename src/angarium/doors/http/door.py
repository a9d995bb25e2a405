"""The door itself: opening it, closing it, and which request goes where."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

import angarium
from angarium.closing import Closings
from angarium.doors.feeds.tails import Tails
from angarium.doors.http.dead_letter_routes import DeadLetterRoutes
from angarium.doors.http.events import Streaming
from angarium.doors.http.fetch_routes import FetchRoutes
from angarium.doors.http.front_page import FrontPage
from angarium.doors.http.graphql import QueryParameters
from angarium.doors.http.group_routes import GroupRoutes
from angarium.doors.http.observing import Observing, Strangers
from angarium.doors.http.problems import READABLE_HEADERS, ProblemOut, problem
from angarium.doors.http.publish_routes import PublishRoutes
from angarium.doors.http.routing import route, routes_of
from angarium.doors.http.sockets import Session
from angarium.doors.http.topic_routes import TopicRoutes
from angarium.doors.intake import Intake
from angarium.wire.http import HttpLimits, HttpServer, Response
from angarium.wire.http.admission import Admission
from angarium.wire.http.messages import JSON
from angarium.wire.http.openapi import document
from angarium.wire.http.router import NoParameters, Route, Router

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker, GroupBroker
    from angarium.api.dead_letters import LettersOfTopic
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint
    from angarium.doors.http.observing import Facts
    from angarium.doors.http.publish_routes import SequencedBroker
    from angarium.wire.http.messages import Answer, Request
    from angarium.wire.listening import Context


class HttpDoor:
    """Serves a broker over HTTP on one address."""

    def __init__(
        self,
        broker: Broker,
        *,
        host: str,
        port: int,
        groups: GroupBroker | None = None,
        sequenced: SequencedBroker | None = None,
        letters: Callable[[str], LettersOfTopic] | None = None,
        facts: Facts | None = None,
        limits: HttpLimits | None = None,
        admission: Admission | None = None,
        leader_hint: Callable[[str, int], str | None] | None = None,
        tls: Context | None = None,
    ) -> None:
        """Prepare a door to `broker`; `port` 0 takes a free one.

        What is behind `groups`, `sequenced` (numbers of a client's own) and `letters` (the dead
        letters in a topic) is not served where it is not given. `facts` is what the node knows of
        itself. `admission` says which hosts are ours, and which web pages may use the door.
        `leader_hint` returns the HTTP address of the node that leads a partition, None if that is
        this node or nobody knows.
        """
        self._broker = broker
        self._host = host
        self._port = port
        self._tls = tls
        self._groups = groups
        self._sequenced = sequenced
        self._letters = letters
        self._facts = facts or Strangers()
        self._limits = limits or HttpLimits()
        self._admission = admission or Admission()
        self._leader_hint = leader_hint
        self.intake = Intake(broker)
        self._closings = Closings()
        self._graphql: GraphqlEndpoint | None = None
        self._loading: asyncio.Task[None] | None = None
        self.router = Router(self._routes(), lists="GET /v1/openapi.json lists all")
        info = {
            "title": "Angarium",
            "version": angarium.__version__,
            "description": "A replicated message broker. Every error is an RFC 9457 problem.",
        }
        shown = document(self.router.routes, info=info, problem=ProblemOut)
        self._document = msgspec.json.encode(shown)
        self.server = HttpServer(
            self._handle,
            problem,
            self._limits,
            on_answered=self.observing.requests.answered,
            closings=self._closings,
        )

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        port = await self.server.start(host=self._host, port=self._port, tls=self._tls)
        self._loading = asyncio.get_running_loop().create_task(self._load_graphql())
        return port

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other requests have `grace_s` to finish."""
        if self._loading is not None:
            self._loading.cancel()
        await self.server.stop(grace_s)

    def _handle(self, request: Request) -> Answer:
        told = self._admission.admit(request, readable=READABLE_HEADERS)
        return self.router.dispatch(request) if told is None else told

    def _routes(self) -> list[Route]:
        broker = self._broker
        self.observing = Observing(broker, self._facts, lambda: self.server)
        publishing = PublishRoutes(self.intake, self._leader_hint, sequenced=self._sequenced)
        streaming = Streaming(
            broker,
            self._groups,
            Tails(broker, self._closings),
            self._closings,
            heartbeat_s=self._limits.heartbeat_seconds,
        )
        parts: list[object] = [
            *(publishing, FetchRoutes(broker), streaming),
            *(TopicRoutes(broker, self.intake.shapes), self.observing),
        ]
        if self._groups is not None:
            parts.append(GroupRoutes(self._groups))
        if self._letters is not None:
            parts.append(DeadLetterRoutes(self._letters))
        found = [one for part in (*parts, self) for one in routes_of(part)]
        front = FrontPage(found)
        return [*found, Route(method="GET", path="/", handler=front.show, summary="Links.")]

    @route("GET /v1/socket", "A WebSocket: subscribe, consume, settle, publish.")
    async def _socket(self, request: Request, _: NoParameters) -> None:
        await Session(request, self.intake, self._groups, self._closings).run()

    # --- GraphQL: loaded after the door is open, because that takes a while --------------------

    async def _load_graphql(self) -> None:
        await asyncio.to_thread(_import_graphql)
        self._endpoint()

    def _endpoint(self) -> GraphqlEndpoint:
        if self._graphql is None:
            endpoint = _import_graphql()
            self._graphql = endpoint(self.intake, self._groups, self._closings)
        return self._graphql

    @route("POST /graphql", "GraphQL.", parameters=QueryParameters)
    def _graphql_post(self, request: Request, given: QueryParameters) -> Answer:
        return self._endpoint().post(request, given)

    @route(
        "GET /graphql",
        "GraphQL queries, WebSockets, and a page to try it out.",
        parameters=QueryParameters,
    )
    def _graphql_get(self, request: Request, given: QueryParameters) -> Answer:
        return self._endpoint().get(request, given)

    @route("GET /graphql/schema", "The schema.")
    def _graphql_schema(self, request: Request, _: NoParameters) -> Answer:
        return self._endpoint().sdl(request)

    @route("GET /v1/openapi.json", "The OpenAPI document: every request, every field.")
    def _openapi(self, _: Request, __: NoParameters) -> Response:
        return Response(200, self._document, JSON)


def _import_graphql() -> type[GraphqlEndpoint]:
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint  # noqa: PLC0415

    return GraphqlEndpoint
