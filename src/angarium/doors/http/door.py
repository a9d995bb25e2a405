"""The door itself: opening it, closing it, and which request goes where."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from angarium.doors.http.administration import Administration
from angarium.doors.http.events import Streaming
from angarium.doors.http.graphql.parameters import QueryParameters
from angarium.doors.http.groups import GroupAdministration
from angarium.doors.http.lanes import Lanes
from angarium.doors.http.letters import LetterDesk
from angarium.doors.http.observing import Observing, Strangers
from angarium.doors.http.openapi import document
from angarium.doors.http.origins import Origins
from angarium.doors.http.problems import problem
from angarium.doors.http.publishing import Publishing
from angarium.doors.http.reading import Reading
from angarium.doors.http.routes import (
    administration_routes,
    observing_routes,
    record_routes,
    stream_routes,
)
from angarium.doors.http.routing import NoParameters, Route, Router
from angarium.doors.http.server import HttpLimits, HttpServer, Response
from angarium.doors.http.server.messages import JSON
from angarium.doors.http.sockets import Sockets
from angarium.doors.http.tails import Tails
from angarium.doors.partitions import TopicShapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker, GroupBroker
    from angarium.client import Client
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint
    from angarium.doors.http.observing import Facts
    from angarium.doors.http.publishing import SequencedBroker
    from angarium.doors.http.server.messages import Answer, Request


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
        client: Callable[[], Client] | None = None,
        facts: Facts | None = None,
        limits: HttpLimits | None = None,
        origins: tuple[str, ...] = (),
        leader_hint: Callable[[str, int], str | None] | None = None,
    ) -> None:
        """Prepare a door to `broker`; `port` 0 takes a free one.

        What is behind `groups`, `sequenced` (idempotency keys) and `client` (dead letters) is not
        served where it is not given. `facts` is what the node knows of itself. `origins` are the
        web pages, besides our own, whose scripts may use the door. `leader_hint` returns the HTTP
        address of the node that leads a partition, None if that is this node or nobody knows.
        """
        self._broker = broker
        self._host = host
        self._port = port
        self._groups = groups
        self._sequenced = sequenced
        self._client = client
        self._facts = facts or Strangers()
        self._limits = limits or HttpLimits()
        self._origins = Origins(origins)
        self._leader_hint = leader_hint
        self._shapes = TopicShapes(broker)
        self.lanes = Lanes(broker, self._shapes)
        self._graphql: GraphqlEndpoint | None = None
        self._loading: asyncio.Task[None] | None = None
        self.router = Router(self._routes())
        self._document = msgspec.json.encode(document(self.router.routes))
        self.server = HttpServer(
            self._handle, problem, self._limits, on_answered=self.observing.answered
        )

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        port = await self.server.start(host=self._host, port=self._port)
        self._loading = asyncio.get_running_loop().create_task(self._load_graphql())
        return port

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other requests have `grace_s` to finish."""
        if self._loading is not None:
            self._loading.cancel()
        await self.server.stop(grace_s)

    def _handle(self, request: Request) -> Answer:
        told = self._origins.admit(request)
        return self.router.dispatch(request) if told is None else told

    def _routes(self) -> list[Route]:
        broker = self._broker
        shapes = self._shapes
        self.observing = Observing(broker, self._facts, lambda: self.server)
        publishing = Publishing(
            broker, shapes, self.lanes, self._leader_hint, sequenced=self._sequenced
        )
        streaming = Streaming(
            broker, self._groups, Tails(broker), heartbeat_s=self._limits.heartbeat_seconds
        )
        sockets = Sockets(broker, self._groups, shapes, self.lanes)
        found = [
            *record_routes(publishing, Reading(broker)),
            *stream_routes(streaming, sockets),
            *administration_routes(Administration(broker, shapes)),
            *observing_routes(self.observing),
            *self._graphql_routes(),
        ]
        if self._groups is not None:
            found += GroupAdministration(self._groups).routes()
        if self._client is not None:
            found += LetterDesk(self._client).routes()
        summary = "This document."
        path = "/v1/openapi.json"
        return [*found, Route(method="GET", path=path, handler=self._openapi, summary=summary)]

    # --- GraphQL: loaded after the door is open, because that takes a while --------------------

    async def _load_graphql(self) -> None:
        await asyncio.to_thread(_import_graphql)
        self._endpoint()

    def _endpoint(self) -> GraphqlEndpoint:
        if self._graphql is None:
            endpoint = _import_graphql()
            self._graphql = endpoint(self._broker, self._groups, self._shapes, self.lanes)
        return self._graphql

    def _graphql_post(self, request: Request, given: QueryParameters) -> Answer:
        return self._endpoint().post(request, given)

    def _graphql_get(self, request: Request, given: QueryParameters) -> Answer:
        return self._endpoint().get(request, given)

    def _graphql_schema(self, request: Request, _: NoParameters) -> Answer:
        return self._endpoint().sdl(request)

    def _graphql_routes(self) -> list[Route]:
        return [
            Route(
                method="POST",
                path="/graphql",
                handler=self._graphql_post,
                parameters=QueryParameters,
                summary="GraphQL.",
            ),
            Route(
                method="GET",
                path="/graphql",
                handler=self._graphql_get,
                parameters=QueryParameters,
                summary="GraphQL queries, WebSockets, and a page to try it out.",
            ),
            Route(
                method="GET",
                path="/graphql/schema",
                handler=self._graphql_schema,
                summary="The schema.",
            ),
        ]

    def _openapi(self, _: Request, __: NoParameters) -> Response:
        return Response(200, self._document, JSON)


def _import_graphql() -> type[GraphqlEndpoint]:
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint  # noqa: PLC0415

    return GraphqlEndpoint
