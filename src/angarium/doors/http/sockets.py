"""WebSockets: subscriptions with credit, groups with acknowledgements, and publishes, on one line.

A socket carries several subscriptions, each under an id that the client chose. Everything that is
answered is answered under the id it was asked under; what goes wrong ends that id and nothing else.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import ConsumeRequest, Interest, Start, StartAt
from angarium.doors.feeds.following import Whole
from angarium.doors.feeds.positions import found_start, known_in, offsets_in
from angarium.doors.feeds.whole import WholeTopics
from angarium.doors.http.ack_json import AckWriter, mode_of
from angarium.doors.http.events import start_of
from angarium.doors.http.problems import told
from angarium.doors.http.record_json import outgoing
from angarium.doors.http.settlement_json import settled_out, settlement_of
from angarium.doors.http.socket_feeds import GroupSocketFeed, SocketFeed, TopicSocketFeed
from angarium.doors.http.socket_messages import (
    Authenticate,
    Consume,
    MoreCredit,
    Publish,
    Settle,
    Subscribe,
    Unsubscribe,
    decoder,
    id_in,
)
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    LimitExceeded,
    NotFound,
)
from angarium.kinds import GroupKind
from angarium.wire.errors import UnsupportedOperation
from angarium.wire.http.socket_session import Over, SocketSession, accepted
from angarium.wire.http.stream import StreamCut
from angarium.wire.http.strict_json import decoded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from angarium.closing import Closings
    from angarium.doors.http.faces import HttpFace
    from angarium.doors.http.socket_messages import Said
    from angarium.doors.intake import Placed
    from angarium.wire.http import Request

    LogIn: TypeAlias = Callable[[str | None], Awaitable[HttpFace]]

LOGIN_S_MAX: Final = 10.0
"""How long a client may take to say who it is, where it has to; then the socket is closed."""

NOT_PROVEN: Final = 4401
TOO_SLOW: Final = 4408

FEEDS_MAX: Final = 64
"""Subscriptions on one socket. One more is refused."""

PUBLISHES_MAX: Final = 1_024
"""Publishes of one socket that are not answered yet. At the bound nothing more is read from it."""

PUBLISHED: Final = b'{"type":"published","id":%b,"ack":%b}'

_encode: Final = msgspec.json.Encoder().encode


class Session(SocketSession):
    """One client."""

    def __init__(
        self,
        request: Request,
        face: HttpFace,
        closings: Closings,
        *,
        log_in: LogIn | None = None,
        is_known: bool = False,
    ) -> None:
        """Accept the WebSocket; raises `RequestRefused` if the request is none for one, and
        `QuotaExceeded` if its client has as many as it may.

        With `log_in` the first message has to say who the client is, or may, if that `is_known` by
        its certificate: what it says goes before.
        """
        self._leave = face.counted.enter()
        try:
            is_guest = log_in is not None and not is_known
            websocket = accepted(request, subprotocols=("angarium.v1",), is_guest=is_guest)
            super().__init__(websocket, closings)
        except BaseException:
            self._leave()
            raise
        self._log_in = log_in
        self._is_known = is_known
        self._become(face)
        self._feeds: dict[str, SocketFeed] = {}
        self._publishes = asyncio.Semaphore(PUBLISHES_MAX)
        self._acks = AckWriter()

    def _become(self, face: HttpFace) -> None:
        """Serve whom that face is for."""
        self._intake, self._groups = face.intake, face.groups
        self._broker = face.intake.broker
        self._websocket.tolled = self._counted = face.counted

    async def _close_feeds(self) -> None:
        for feed in list(self._feeds.values()):
            await feed.close()

    async def _hear(self, text: str) -> None:
        name = ""
        try:
            toll = self._counted.toll
            if toll is not None and (self._log_in is None or self._is_known):
                await toll.admit_request()
            try:
                said = decoded(text, decoder)
            except InvalidArgument:
                name = id_in(text)
                raise
            name = said.id
            log_in = self._log_in
            if self._is_known and not isinstance(said, Authenticate):
                log_in = self._log_in = None
            if log_in is not None:
                await self._take_proof(said, log_in)
                return
            await self._do(said)
        except AngariumError as error:
            self._websocket.note_control()
            await self._tell_error(name, error)

    async def run(self) -> None:
        """Do what the client says until it goes; it does not stay long without saying who it is."""
        hurry = asyncio.get_running_loop().call_later(LOGIN_S_MAX, self._check_proven)
        try:
            await super().run()
        finally:
            hurry.cancel()
            self._leave()

    def _check_proven(self) -> None:
        if self._log_in is not None and not self._is_known:
            self._websocket.close(TOO_SLOW, "nobody said who they are")

    async def _take_proof(self, said: Said, log_in: LogIn) -> None:
        """Find out who the client is by its first message; it has no second one."""
        try:
            face = await log_in(said.header() if isinstance(said, Authenticate) else None)
            self._leave()  # the place of whom its certificate named
            self._leave = face.counted.enter()
            self._websocket.admitted()
        except AngariumError as error:
            await self._tell_error(said.id, error)
            raise Over(NOT_PROVEN, "Unauthorized") from None
        self._log_in = None
        self._become(face)
        await self._say({"type": "authenticated", "id": said.id})

    async def _do(self, said: Said) -> None:
        match said:
            case Authenticate():
                raise InvalidArgument("it is known already who is at this socket")
            case Subscribe() | Consume():
                await self._begin(said)
            case Settle():
                self._start(self._settle(said))
            case MoreCredit():
                await self._feed(said.id).more_credit(said.records)
            case Unsubscribe():
                self._feed(said.id).stop()
            case Publish():
                await self._publishes.acquire()
                self._publish(said)

    async def _begin(self, said: Subscribe | Consume) -> None:
        if said.id in self._feeds:
            raise InvalidArgument(f"the id {said.id!r} is in use on this socket")
        if len(self._feeds) >= FEEDS_MAX:
            raise LimitExceeded("feeds_max", f"one socket has up to {FEEDS_MAX} subscriptions")
        if isinstance(said, Subscribe):
            feed: SocketFeed = await self._subscribed(said)
        else:
            feed = await self._consuming(said)
        self._feeds[said.id] = feed
        await self._say({"type": "subscribed", "id": said.id, **feed.facts})
        self._start(self._run_feed(said.id, feed))

    async def _subscribed(self, said: Subscribe) -> SocketFeed:
        topic, start, number = said.topic, start_of(said), said.partition
        known = None if said.position is None else offsets_in(said.position)
        starts = [Start(StartAt.OFFSET, one) for one in known or ()]
        bound, written = said.max_staleness_ms, known_in(said.at_least, number)
        if number is None:
            begin = None if known is None else dict(enumerate(starts))
            wish = Whole(topic, start, begin, max_staleness_ms=bound, at_least=written)
            whole = WholeTopics(self._broker)
            await whole.want([wish])
            return TopicSocketFeed(whole, self._websocket, said, whole.following(topic).starts)
        offset = await found_start(self._broker, topic, number, starts[0] if starts else start)
        subscription = await self._broker.subscribe(
            [
                Interest(
                    topic=topic,
                    partition=number,
                    start=Start(StartAt.OFFSET, offset),
                    max_staleness_ms=bound,
                    at_least=written.get(number),
                )
            ]
        )
        return TopicSocketFeed(subscription, self._websocket, said, {number: offset})

    async def _consuming(self, said: Consume) -> SocketFeed:
        if self._groups is None:
            raise UnsupportedOperation("groups are not served here")
        consumption = await self._groups.consume(
            ConsumeRequest(
                group=said.group,
                topics=tuple(said.topics),
                kind=None if said.kind is None else GroupKind[said.kind.upper()],
                start=Start(StartAt[said.start.upper()]),
                member=said.member,
                credit=said.credit,
            )
        )
        return GroupSocketFeed(consumption, self._websocket, said)

    async def _run_feed(self, name: str, feed: SocketFeed) -> None:
        try:
            await feed.run()
            await self._say({"type": "ended", "id": name})
        except StreamCut:
            pass
        except AngariumError as error:
            await self._tell_error(name, error)
        finally:
            await self._closings.see_to(feed.close())
            if self._feeds.get(name) is feed:
                del self._feeds[name]

    async def _settle(self, said: Settle) -> None:
        try:
            feed = self._feed(said.id)
            if not isinstance(feed, GroupSocketFeed):
                raise InvalidArgument(f"{said.id!r} is no part of a group")
            (settled,) = await feed.consumption.settle([settlement_of(said)])
            shown = msgspec.to_builtins(settled_out(settled))
            which = {"topic": said.topic, "partition": said.partition, "ranges": said.ranges}
            await self._say({"type": "settled", "id": said.id, **which, **shown})
        except StreamCut:
            pass
        except AngariumError as error:
            await self._tell_error(said.id, error)

    def _publish(self, said: Publish) -> None:
        """Publish a record, without a task for it."""
        name = said.id

        def done(outcome: Placed | Exception) -> None:
            self._publishes.release()
            if isinstance(outcome, Exception):
                self._start(self._tell_error(name, outcome))
                return
            message = PUBLISHED % (_encode(name), self._acks.written(outcome))
            if not self._websocket.send_nowait(message):
                self._start(self._send(message))

        try:
            record, mode = outgoing(said.record), mode_of(said.mode)
            asking = self._intake.send(
                said.topic, record, done, partition=said.partition, mode=mode
            )
        except Exception as error:  # each becomes an answer
            done(error)
        else:
            if asking is not None:
                self._start(asking)

    async def _send(self, message: bytes) -> None:
        with suppress(StreamCut):
            await self._websocket.send(message)

    def _feed(self, name: str) -> SocketFeed:
        feed = self._feeds.get(name)
        if feed is None:
            raise NotFound(f"nothing goes on under the id {name!r}")
        return feed

    async def _tell_error(self, name: str, error: Exception) -> None:
        members = told(error)
        members["kind"] = members.pop("type")
        with suppress(StreamCut):
            await self._say({"type": "error", "id": name, **members})
