"""GraphQL over a WebSocket, in both protocols that clients speak.

`graphql-transport-ws` is the present one; `graphql-ws` is what the older library
subscriptions-transport-ws called its own. They differ in words, not in what happens.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from graphql import OperationType

from angarium.doors.http.graphql.answers import refusal
from angarium.doors.http.graphql.execution import Operation, operation_kind
from angarium.doors.http.graphql.subscribing import LIVE
from angarium.errors import AngariumError, InvalidArgument, LimitExceeded
from angarium.security.credentials import authorization_of
from angarium.wire.http.socket_session import Over, SocketSession
from angarium.wire.http.stream import StreamCut
from angarium.wire.http.strict_json import decoded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from angarium.closing import Closings
    from angarium.doors.http.graphql.endpoint import GraphqlEndpoint
    from angarium.doors.http.graphql.execution import Prepared
    from angarium.doors.http.graphql.subscribing import Events
    from angarium.wire.http.websocket import WebSocket

    LogIn: TypeAlias = Callable[[str | None], Awaitable[GraphqlEndpoint]]

REASON_CHARACTERS_MAX: Final = 100
"""Of why a socket is closed; the frame has room for 123 bytes."""

PROTOCOLS: Final = ("graphql-transport-ws", "graphql-ws")
INIT_SECONDS_MAX: Final = 10.0
"""How long a client may take to introduce itself; then the socket is closed with 4408."""

BAD_MESSAGE: Final = 4400
NOT_INTRODUCED: Final = 4401
FORBIDDEN: Final = 4403
NO_PROTOCOL: Final = 4406
TOO_SLOW: Final = 4408
TAKEN: Final = 4409
TWICE: Final = 4429


@dataclass(frozen=True, slots=True)
class Words:
    """What a protocol calls things."""

    begin: str
    data: str
    end: str


_WORDS: Final = {
    "graphql-transport-ws": Words(begin="subscribe", data="next", end="complete"),
    "graphql-ws": Words(begin="start", data="data", end="stop"),
}


class Message(msgspec.Struct, frozen=True):
    """What a client says."""

    type: str
    id: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


class Brought(msgspec.Struct, frozen=True):
    """What the payload of a `connection_init` may say of who the client is.

    Clients put there what they would send as a header, so that name is understood as well.
    """

    authorization: str | None = None
    Authorization: str | None = None
    token: str | None = None
    user: str | None = None
    password: str | None = None

    def header(self) -> str:
        """Return the same as an `Authorization` header says it; raises `Unauthenticated`."""
        return (
            self.authorization
            or self.Authorization
            or authorization_of(token=self.token, user=self.user, password=self.password)
        )

    def __repr__(self) -> str:
        return "Brought(…)"


_brought: Final = msgspec.json.Decoder(Brought)
_message: Final = msgspec.json.Decoder(Message)
_operation: Final = msgspec.json.Decoder(Operation)


class GraphqlSession(SocketSession):
    """One client."""

    def __init__(
        self,
        websocket: WebSocket,
        endpoint: GraphqlEndpoint,
        closings: Closings,
        *,
        unnamed_protocol: str | None = None,
        log_in: LogIn | None = None,
        is_known: bool = False,
        leave: Callable[[], None],
    ) -> None:
        """With `log_in` the client has to say who it is when it introduces itself, or may, if that
        `is_known` by its certificate. `leave` gives back the place that was taken for it."""
        super().__init__(websocket, closings)
        self._log_in = log_in
        self._is_known = is_known
        self._become(endpoint)
        self._leave = leave
        self._is_introduced = False
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._protocol = websocket.subprotocol or unnamed_protocol
        self._is_old = self._protocol == "graphql-ws"
        self._words = _WORDS.get(self._protocol or "", _WORDS[PROTOCOLS[0]])

    async def run(self) -> None:
        """Serve until the client goes, or breaks the protocol."""
        if self._protocol is None:
            self._websocket.close(NO_PROTOCOL, "Subprotocol not acceptable")
            return
        hurry = asyncio.get_running_loop().call_later(INIT_SECONDS_MAX, self._check_introduced)
        try:
            await super().run()
        finally:
            hurry.cancel()
            self._leave()

    def _become(self, endpoint: GraphqlEndpoint) -> None:
        """Serve whom that endpoint is for."""
        self._executor, self._subscribing = endpoint.executor, endpoint.subscribing
        self._websocket.tolled = self._counted = endpoint.counted

    def _check_introduced(self) -> None:
        if not self._is_introduced:
            self._websocket.close(TOO_SLOW, "Connection initialisation timeout")

    async def _hear(self, text: str) -> None:
        try:
            message = decoded(text, _message)
        except InvalidArgument as error:
            raise Over(BAD_MESSAGE, str(error)) from None
        words = self._words
        match message.type:
            case "connection_init":
                if self._is_introduced:
                    raise Over(TWICE, "Too many initialisation requests")
                await self._take_proof(message.payload)
                self._is_introduced = True
                await self._say({"type": "connection_ack"})
            case "ping":
                self._websocket.note_control()
                await self._say({"type": "pong"})
            case "pong":
                self._websocket.note_control()
            case "connection_terminate":
                self._websocket.close()
            case words.begin:
                self._begin(message)
            case words.end:
                task = self._operations.pop(message.id or "", None)
                if task is not None:
                    task.cancel()
                else:
                    self._websocket.note_control()
            case _:
                raise Over(BAD_MESSAGE, f"Unknown message type {message.type[:40]!r}")

    async def _take_proof(self, raw: msgspec.Raw) -> None:
        """Find out who the client is; it has one try."""
        log_in, self._log_in = self._log_in, None
        if log_in is None:
            return
        try:
            brought = decoded(bytes(raw) or b"{}", _brought)
            is_nothing = brought == Brought()
            if self._is_known and is_nothing:
                return
            endpoint = await log_in(None if is_nothing else brought.header())
            self._leave()  # the place of whom its certificate named
            self._leave = endpoint.counted.enter()
            self._websocket.admitted()
        except AngariumError as error:
            if self._is_old:
                payload = refusal(error)["errors"][0]
                await self._say({"type": "connection_error", "payload": payload})
            raise Over(FORBIDDEN, f"Forbidden: {error}"[:REASON_CHARACTERS_MAX]) from None
        self._become(endpoint)

    def _begin(self, message: Message) -> None:
        if not self._is_introduced:
            raise Over(NOT_INTRODUCED, "Unauthorized")
        name = message.id
        if not name or len(name) > 256:
            raise Over(BAD_MESSAGE, "an operation has an id")
        if name in self._operations:
            raise Over(TAKEN, f"Subscriber for {name[:40]} already exists")
        task = self._operations[name] = self._start(self._operate(name, message.payload))
        task.add_done_callback(lambda done: self._forget(name, done))

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._operations.get(name) is task:
            del self._operations[name]

    async def _operate(self, name: str, raw: msgspec.Raw) -> None:
        try:
            try:
                if len(self._operations) > self._executor.limits.operations_max:
                    raise LimitExceeded("operations_max", "too many operations on this socket")
                if self._counted.toll is not None:
                    await self._counted.toll.admit_request()
                asked = decoded(bytes(raw) or b"null", _operation)
                prepared = self._executor.prepared(asked.query)
                kind = operation_kind(asked, prepared)
            except AngariumError as error:
                errors = refusal(error)["errors"]
                shown = errors[0] if self._is_old else errors
                await self._say({"type": "error", "id": name, "payload": shown})
                return
            if kind is OperationType.SUBSCRIPTION:
                await self._stream(name, asked, prepared)
            else:
                await self._tell(name, await self._executor.executed(asked, prepared))
            await self._say({"type": "complete", "id": name})
        except StreamCut:
            pass

    async def _stream(self, name: str, asked: Operation, prepared: Prepared) -> None:
        opened: list[Events] = []

        def source(
            _: object,
            __: object,
            *,
            topic: str,
            groupId: str | None,  # noqa: N803  (the schema's name)
            maxStalenessMs: int | None = None,  # noqa: N803
            atLeast: str | None = None,  # noqa: N803
        ) -> Events:
            opened.append(
                self._subscribing.stream(
                    topic=topic,
                    group=groupId or LIVE,
                    max_staleness_ms=maxStalenessMs,
                    at_least=atLeast,
                )
            )
            return opened[-1]

        try:
            async with aclosing(self._executor.events(asked, prepared, source)) as answers:
                async for answer in answers:
                    await self._tell(name, answer)
        finally:
            for events in opened:
                await self._closings.see_to(events.close())

    async def _tell(self, name: str, answer: dict[str, Any]) -> None:
        await self._say({"type": self._words.data, "id": name, "payload": answer})
