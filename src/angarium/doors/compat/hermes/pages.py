"""The profile's HTTP listener: its routes, its JSON, its plain sentences."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from angarium.doors.compat.hermes.feeds import GROUP, begun, described
from angarium.doors.compat.hermes.joining import Joining
from angarium.doors.compat.hermes.publishing import HermesPublishing
from angarium.doors.compat.listening import Refused
from angarium.doors.compat.pacing import paced
from angarium.doors.http.events import HEADERS, HEARTBEAT
from angarium.doors.http.graphql.endpoint import GraphqlEndpoint
from angarium.doors.http.graphql.parameters import QueryParameters
from angarium.doors.http.graphql.subscribing import Subscribing
from angarium.doors.http.lanes import Lanes
from angarium.doors.http.observing import Observing, Strangers
from angarium.doors.http.origins import Origins
from angarium.doors.http.problems import http_status
from angarium.doors.http.routing import NoParameters, Route, Router
from angarium.doors.http.server import HttpLimits, HttpServer, Response
from angarium.doors.http.server.messages import JSON
from angarium.doors.http.server.stream import StreamCut
from angarium.doors.http.strict_json import decoded
from angarium.doors.partitions import TopicShapes
from angarium.doors.patience import patient
from angarium.errors import InvalidArgument
from angarium.wire.error_codec import failure_of

if TYPE_CHECKING:
    from angarium.api import GroupBroker, TopicInfo
    from angarium.doors.compat.hermes.feeds import Feed, HermesBroker, Sent
    from angarium.doors.http.observing import Facts
    from angarium.doors.http.server import Request, Stream
    from angarium.doors.http.server.messages import Answer

_encode: Final = msgspec.json.Encoder().encode
_PLAIN: Final = b"text/plain; charset=utf-8"


class PublishBody(msgspec.Struct, frozen=True):
    """A record."""

    topic: str
    payload: str
    mode: Annotated[int, Meta(ge=0, le=2)] = 0


class BatchBody(msgspec.Struct, frozen=True):
    """Records."""

    topic: str
    payloads: list[str]
    mode: Annotated[int, Meta(ge=0, le=2)] = 0


class SubscribeParameters(msgspec.Struct, frozen=True):
    """What to subscribe to."""

    topic: str = ""
    group: str = ""


class JoinBody(msgspec.Struct, frozen=True):
    """A node that wants to take part."""

    node_id: str = ""
    raft_addr: str = ""


_joined: Final = msgspec.json.Decoder(JoinBody)
_publish: Final = msgspec.json.Decoder(PublishBody)
_batch: Final = msgspec.json.Decoder(BatchBody)


class HermesSubscribing(Subscribing):
    """Subscriptions over GraphQL, to topics that are made where they are not there."""

    async def _described(self, topic: str) -> TopicInfo:
        return await described(self._broker, topic)


class HermesHttpDoor:
    """Serves the profile's HTTP routes on one address."""

    def __init__(
        self,
        broker: HermesBroker,
        groups: GroupBroker,
        *,
        host: str,
        port: int,
        facts: Facts | None = None,
        limits: HttpLimits | None = None,
        joining: Joining | None = None,
        origins: tuple[str, ...] = (),
    ) -> None:
        """Prepare; `origins` are the web pages from elsewhere whose scripts may use it."""
        self._joining = joining or Joining(broker, token="")
        self._origins = Origins(origins)
        broker = paced(patient(broker))
        self._broker = broker
        self._groups = patient(groups)
        self._host = host
        self._port = port
        self._limits = limits or HttpLimits()
        self._publishing = HermesPublishing(broker)
        shapes = TopicShapes(broker)
        self._graphql = GraphqlEndpoint(
            broker,
            self._groups,
            shapes,
            Lanes(broker, shapes),
            name="query",
            subscribing=HermesSubscribing(broker, self._groups, GROUP),
        )
        self._observing = Observing(broker, facts or Strangers(), lambda: self.server)
        self._subscriptions = 0
        self._router = Router(self._routes(), lists="docs/reference/compat.md has a list")
        self.server = HttpServer(self._handle, _sentence, self._limits)

    async def start(self) -> int:
        """Open the door; return the port."""
        return await self.server.start(host=self._host, port=self._port)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door."""
        await self.server.stop(grace_s)

    def _handle(self, request: Request) -> Answer:
        told = self._origins.admit(request)
        return self._router.dispatch(request) if told is None else told

    def _routes(self) -> list[Route]:
        graphql, observing = self._graphql, self._observing
        found: list[tuple[str, str, Any, Any]] = [
            ("POST", "/publish", self._publish_one, NoParameters),
            ("POST", "/publish/batch", self._publish_many, NoParameters),
            ("GET", "/subscribe", self._subscribe, SubscribeParameters),
            ("POST", "/join", self._join, NoParameters),
            ("GET", "/status", observing.status, NoParameters),
            ("POST", "/query", graphql.post, QueryParameters),
            ("GET", "/query", graphql.get, QueryParameters),
            ("GET", "/query/schema", graphql.sdl, NoParameters),
            ("GET", "/", graphql.playground, QueryParameters),
        ]
        return [
            Route(method=method, path=path, handler=handler, parameters=kind, summary=path)
            for method, path, handler, kind in found
        ]

    async def _publish_one(self, request: Request, _: NoParameters) -> Response:
        body = decoded(request.body, _publish)
        if not body.payload:
            raise InvalidArgument("topic and payload are required")
        await self._publishing.publish(body.topic, body.payload.encode(), body.mode)
        return Response(200, _encode({"success": True}), JSON)

    async def _publish_many(self, request: Request, _: NoParameters) -> Response:
        body = decoded(request.body, _batch)
        payloads = [one.encode() for one in body.payloads]
        await self._publishing.publish_batch(body.topic, payloads, body.mode)
        return Response(200, _encode({"count": len(payloads), "success": True}), JSON)

    async def _subscribe(self, request: Request, given: SubscribeParameters) -> None:
        if not given.topic:
            raise InvalidArgument("topic is required")
        feed = await begun(self._broker, self._groups, given.topic, given.group)
        try:
            stream = request.connection.begin_stream(request, status=200, headers=HEADERS)
            with suppress(StreamCut):
                await self._stream(feed, stream)
        finally:
            await feed.close()

    async def _stream(self, feed: Feed, stream: Stream) -> None:
        self._subscriptions += 1
        name = _encode({"sub_id": f"sub-{self._subscriptions}"})
        await stream.write(b"event: connected\ndata: %b\n\n" % name)
        beating = asyncio.create_task(self._beat(stream))
        try:
            async with aclosing(feed.messages()) as portions:
                async for portion in portions:
                    for one in portion:
                        await stream.write(b"data: %b\n\n" % _encode(_shown(one)))
                        # As the profile's broker does: written is delivered.
                        await feed.acknowledge(one.id)
        finally:
            beating.cancel()
            stream.end()

    async def _beat(self, stream: Stream) -> None:
        with suppress(StreamCut):
            while True:
                await asyncio.sleep(self._limits.heartbeat_seconds)
                await stream.write(HEARTBEAT)

    async def _join(self, request: Request, _: NoParameters) -> Response:
        body = decoded(request.body, _joined)
        said = request.text_header(b"authorization") or ""
        try:
            refusal = await self._joining.asked(body.raft_addr, said)
        except Refused as error:
            return Response(403, f"{error}\n".encode(), _PLAIN)
        if refusal:
            return Response(400, f"{refusal}\n".encode(), _PLAIN)
        return Response(200, _encode({"success": True}), JSON)


def _shown(one: Sent) -> dict[str, object]:
    return {
        "id": one.id,
        "payload": one.payload.decode(errors="replace"),
        "timestamp": one.time_us // 1_000_000,
        "topic": one.topic,
    }


def _sentence(error: Exception, /, *, status: int | None = None) -> Response:
    """Return an error as the profile tells it: a plain sentence."""
    found = status or http_status(error)
    return Response(found, f"{failure_of(error).message}\n".encode(), _PLAIN)
