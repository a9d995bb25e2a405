"""The profile's HTTP listener: its routes, its JSON, its plain sentences."""

from __future__ import annotations

from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.closing import Closings
from angarium.doors.feeds.beating import beating
from angarium.doors.http.graphql import QueryParameters
from angarium.doors.http.graphql.endpoint import GraphqlEndpoint
from angarium.doors.http.graphql.subscribing import Subscribing
from angarium.doors.http.observing import Observing, Strangers
from angarium.doors.http.problems import HINT_HEADER, READABLE_HEADERS, http_status
from angarium.doors.intake import Intake
from angarium.errors import InvalidArgument
from angarium.security.origin import ORIGIN, Origin
from angarium.service.patience import patient
from angarium.wire.error_codec import failure_of
from angarium.wire.http import HttpLimits, HttpServer, Response
from angarium.wire.http.admission import Admission
from angarium.wire.http.messages import JSON
from angarium.wire.http.router import NoParameters, Route, Router
from angarium.wire.http.stream import EVENT_HEADERS, HEARTBEAT, StreamCut
from angarium_compat.hermes.feeds import GROUP, begun, messages
from angarium_compat.hermes.joining import Joining
from angarium_compat.hermes.lenient_json import LenientDecoder
from angarium_compat.hermes.publishing import HermesPublishing
from angarium_compat.listening import Refused
from angarium_compat.subscribing import found, subscribed_live

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.api import Consumption, GroupBroker, Subscription
    from angarium.doors.feeds.feed import Feed
    from angarium.doors.feeds.following import Whole
    from angarium.doors.http.observing import Facts
    from angarium.doors.intake import Placed
    from angarium.wire.http import Request, Stream
    from angarium.wire.http.messages import Answer, Headers
    from angarium.wire.listening import Context
    from angarium_compat.hermes.feeds import Sent
    from angarium_compat.subscribing import LiveBroker

_encode: Final = msgspec.json.Encoder().encode
_SUCCESS: Final = _encode({"success": True})
_PLAIN: Final = b"text/plain; charset=utf-8"


class PublishBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record."""

    topic: str = ""
    payload: str = ""
    mode: int = 0


class BatchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records."""

    topic: str = ""
    payloads: list[str] = msgspec.field(default_factory=list)
    mode: int = 0


class SubscribeParameters(msgspec.Struct, frozen=True):
    """What to subscribe to."""

    topic: str = ""
    group: str = ""


class JoinBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node that wants to take part."""

    node_id: str = ""
    raft_addr: str = ""


_joined: Final = LenientDecoder(JoinBody)
_publish: Final = LenientDecoder(PublishBody)
_batch: Final = LenientDecoder(BatchBody)


class HermesSubscribing(Subscribing):
    """Subscriptions over GraphQL, to topics that are made where they are not there."""

    def __init__(self, broker: LiveBroker, groups: GroupBroker) -> None:
        super().__init__(broker, groups, GROUP)
        self._live = broker

    async def subscribed(self, wish: Whole) -> Subscription:
        """Subscribe to a topic."""
        return await subscribed_live(self._live, wish)

    async def joined(self, topic: str, group: str) -> Consumption:
        """Take part in a group."""
        await found(self._live, topic)
        return await super().joined(topic, group)


class HermesHttpDoor:
    """Serves the profile's HTTP routes on one address."""

    def __init__(
        self,
        broker: LiveBroker,
        groups: GroupBroker,
        *,
        host: str,
        port: int,
        facts: Facts | None = None,
        limits: HttpLimits | None = None,
        joining: Joining | None = None,
        admission: Admission | None = None,
        leader_hint: Callable[[str], str | None] | None = None,
        tls: Context | None = None,
        measuring: Callable[[], Awaitable[object]] | None = None,
        is_traced: bool = False,
    ) -> None:
        """Prepare; `admission` says which hosts are ours, and which web pages may use it.

        `leader_hint` returns this listener of the node that leads a topic, as at the gRPC one.
        """
        self._leader_hint = leader_hint
        self._is_traced = is_traced
        self._joining = joining or Joining(broker, token="")
        self._admission = admission or Admission()
        broker = patient(broker)
        self._broker = broker
        self._groups = patient(groups)
        self._host = host
        self._port = port
        self._tls = tls
        self._limits = limits or HttpLimits()
        self._publishing = HermesPublishing(broker)
        closings = Closings()
        self._graphql = GraphqlEndpoint(
            Intake(broker),
            self._groups,
            closings,
            name="query",
            unnamed_protocol="graphql-ws",  # what its library took such clients to speak
            hints=self._hints,
            subscribing=HermesSubscribing(broker, self._groups),
        )
        self._observing = Observing(
            broker, facts or Strangers(), lambda: self.server, measuring=measuring
        )
        self._subscriptions = 0
        self._router = Router(self._routes(), lists="docs/reference/compat.md has a list")
        self.server = HttpServer(self._handle, _sentence, self._limits, closings=closings)

    async def start(self) -> int:
        """Open the door; return the port."""
        return await self.server.start(host=self._host, port=self._port, tls=self._tls)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door."""
        await self.server.stop(grace_s)

    def _handle(self, request: Request) -> Answer:
        if self._is_traced:
            ORIGIN.set(Origin("hermes", request.source))
        told = self._admission.admit(request, readable=READABLE_HEADERS)
        return self._router.dispatch(request) if told is None else told

    def _routes(self) -> list[Route]:
        graphql, observing = self._graphql, self._observing
        found: list[tuple[str, str, Any, Any]] = [
            ("POST", "/publish", self._publish_one, NoParameters),
            ("POST", "/publish/batch", self._publish_many, NoParameters),
            ("GET", "/subscribe", self._subscribe, SubscribeParameters),
            ("POST", "/join", self._join, NoParameters),
            ("GET", "/status", observing.status, NoParameters),
            ("POST", "/status", observing.status, NoParameters),
            ("POST", "/query", graphql.post, QueryParameters),
            ("GET", "/query", graphql.get, QueryParameters),
            ("GET", "/query/schema", graphql.sdl, NoParameters),
            ("GET", "/", graphql.playground, QueryParameters),
        ]
        routes = [
            Route(method=method, path=path, handler=handler, parameters=kind, summary=path)
            for method, path, handler, kind in found
        ]
        # A subscription creates its topic, and takes records from its group.
        return [
            replace(one, changes=lambda _: True) if one.path == "/subscribe" else one
            for one in routes
        ]

    def _publish_one(self, request: Request, _: NoParameters) -> Answer:
        body = _publish.decode(request.body)
        topic = body.topic
        if not topic or not body.payload:
            raise InvalidArgument("topic and payload are required")

        def done(outcome: Placed | Exception) -> None:
            if isinstance(outcome, Exception):
                request.answer(_sentence(outcome))
            else:
                request.answer(Response(200, _SUCCESS, JSON, self._hints(topic)))

        return self._publishing.begin(topic, body.payload.encode(), body.mode, done)

    async def _publish_many(self, request: Request, _: NoParameters) -> Response:
        body = _batch.decode(request.body)
        if not body.topic or not body.payloads:
            raise InvalidArgument("topic and payloads are required")
        payloads = [one.encode() for one in body.payloads]
        await self._publishing.publish_batch(body.topic, payloads, body.mode)
        answer = {"count": len(payloads), "success": True}
        return Response(200, _encode(answer), JSON, self._hints(body.topic))

    def _hints(self, topic: str) -> Headers:
        hint = None if self._leader_hint is None else self._leader_hint(topic)
        return () if hint is None else ((HINT_HEADER, hint.encode()),)

    async def _subscribe(self, request: Request, given: SubscribeParameters) -> None:
        if not given.topic:
            raise InvalidArgument("topic is required")
        feed = await begun(self._broker, self._groups, given.topic, given.group)
        try:
            stream = request.connection.begin_stream(request, status=200, headers=EVENT_HEADERS)
            with suppress(StreamCut):
                await self._stream(feed, stream)
        finally:
            await self.server.closings.see_to(feed.close())

    async def _stream(self, feed: Feed, stream: Stream) -> None:
        self._subscriptions += 1
        name = _encode({"sub_id": f"sub-{self._subscriptions}"})
        await stream.write(b"event: connected\ndata: %b\n\n" % name)
        coming = beating(
            aiter(feed), lambda: stream.write(HEARTBEAT), seconds=self._limits.heartbeat_seconds
        )
        try:
            async with aclosing(coming):
                async for portion in coming:
                    topic, partition, records, is_live, *_ = portion
                    for record, one in zip(records, messages(portion), strict=True):
                        await stream.write(b"data: %b\n\n" % _encode(_shown(one)))
                        if not is_live:
                            # As the profile's broker does: written is delivered.
                            offset = record.offset
                            await feed.acknowledge(topic, partition, (offset, offset + 1))
        finally:
            stream.end()

    async def _join(self, request: Request, _: NoParameters) -> Response:
        body = _joined.decode(request.body)
        said = request.text_header(b"authorization") or ""
        try:
            refusal = await self._joining.asked(body.raft_addr, said)
        except Refused as error:
            return Response(403, f"{error}\n".encode(), _PLAIN)
        if refusal:
            return Response(400, f"{refusal}\n".encode(), _PLAIN)
        return Response(200, _SUCCESS, JSON)


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
