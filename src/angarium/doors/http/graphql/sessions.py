"""GraphQL over a WebSocket, in both protocols that clients speak.

`graphql-transport-ws` is the present one; `graphql-ws` is what the older library
subscriptions-transport-ws called its own. They differ in words, not in what happens.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from graphql import ExecutionResult, GraphQLError, OperationType, subscribe

from angarium.doors.http.graphql.documents import operation_kind
from angarium.doors.http.graphql.execution import answer_of, executed, refusal
from angarium.doors.http.graphql.subscribing import LIVE
from angarium.doors.http.strict_json import decoded
from angarium.errors import AngariumError, InvalidArgument, LimitExceeded
from angarium.wire.http.stream import StreamCut

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from graphql import GraphQLSchema

    from angarium.closing import Closings
    from angarium.doors.http.graphql.documents import Documents, Prepared
    from angarium.doors.http.graphql.resolving import Resolvers
    from angarium.doors.http.graphql.subscribing import Events, Subscribing
    from angarium.wire.http import WebSocket

PROTOCOLS: Final = ("graphql-transport-ws", "graphql-ws")
INIT_SECONDS_MAX: Final = 10.0
"""How long a client may take to introduce itself; then the socket is closed with 4408."""

BAD_MESSAGE: Final = 4400
NOT_INTRODUCED: Final = 4401
NO_PROTOCOL: Final = 4406
TOO_SLOW: Final = 4408
TAKEN: Final = 4409
TWICE: Final = 4429

_encode: Final = msgspec.json.Encoder().encode


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


class Payload(msgspec.Struct, frozen=True):
    """An operation."""

    query: str
    variables: dict[str, Any] | None = None
    operationName: str | None = None  # noqa: N815  (the protocol's name)


class Message(msgspec.Struct, frozen=True):
    """What a client says."""

    type: str
    id: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


_message: Final = msgspec.json.Decoder(Message)
_payload: Final = msgspec.json.Decoder(Payload)


class Over(Exception):
    """The client broke the protocol."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class GraphqlSession:
    """One client."""

    def __init__(
        self,
        websocket: WebSocket,
        *,
        schema: GraphQLSchema,
        documents: Documents,
        resolvers: Resolvers,
        subscribing: Subscribing,
        closings: Closings,
        operations_max: int,
        unnamed_protocol: str | None = None,
    ) -> None:
        self._websocket = websocket
        self._schema = schema
        self._documents = documents
        self._resolvers = resolvers
        self._subscribing = subscribing
        self._closings = closings
        self._operations_max = operations_max
        self._is_introduced = False
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._protocol = websocket.subprotocol or unnamed_protocol
        self._is_old = self._protocol == "graphql-ws"
        self._words = _WORDS.get(self._protocol or "", _WORDS[PROTOCOLS[0]])

    async def run(self) -> None:
        """Serve until the client goes."""
        websocket = self._websocket
        if self._protocol is None:
            websocket.close(NO_PROTOCOL, "Subprotocol not acceptable")
            return
        hurry = asyncio.get_running_loop().call_later(INIT_SECONDS_MAX, self._check_introduced)
        try:
            while (text := await websocket.receive()) is not None:
                await self._hear(text)
        except Over as over:
            websocket.close(over.code, str(over))
        except StreamCut:
            pass
        finally:
            hurry.cancel()
            await self._closings.see_to(self._end())

    async def _end(self) -> None:
        """Give up everything."""
        tasks = list(self._operations.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._websocket.close()

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
                self._is_introduced = True
                await self._say({"type": "connection_ack"})
            case "ping":
                await self._say({"type": "pong"})
            case "pong":
                pass
            case "connection_terminate":
                self._websocket.close()
            case words.begin:
                self._begin(message)
            case words.end:
                task = self._operations.pop(message.id or "", None)
                if task is not None:
                    task.cancel()
            case _:
                raise Over(BAD_MESSAGE, f"Unknown message type {message.type[:40]!r}")

    def _begin(self, message: Message) -> None:
        if not self._is_introduced:
            raise Over(NOT_INTRODUCED, "Unauthorized")
        name = message.id
        if not name or len(name) > 256:
            raise Over(BAD_MESSAGE, "an operation has an id")
        if name in self._operations:
            raise Over(TAKEN, f"Subscriber for {name[:40]} already exists")
        task = asyncio.get_running_loop().create_task(self._operate(name, message.payload))
        self._operations[name] = task
        task.add_done_callback(lambda done: self._forget(name, done))

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._operations.get(name) is task:
            del self._operations[name]

    async def _operate(self, name: str, raw: msgspec.Raw) -> None:
        try:
            try:
                if len(self._operations) > self._operations_max:
                    raise LimitExceeded("operations_max", "too many operations on this socket")
                payload = decoded(bytes(raw) or b"null", _payload)
                prepared = self._documents.prepared(payload.query)
                kind = operation_kind(prepared, payload.operationName)
            except AngariumError as error:
                errors = refusal(error)["errors"]
                shown = {"message": errors[0]["message"], **errors[0]} if self._is_old else errors
                await self._say({"type": "error", "id": name, "payload": shown})
                return
            if kind is OperationType.SUBSCRIPTION:
                await self._stream(name, payload, prepared)
            else:
                answer = await executed(
                    self._schema,
                    prepared,
                    self._resolvers,
                    variables=payload.variables,
                    operation=payload.operationName,
                )
                await self._say({"type": self._words.data, "id": name, "payload": answer})
            await self._say({"type": "complete", "id": name})
        except StreamCut:
            pass

    async def _stream(self, name: str, payload: Payload, prepared: Prepared) -> None:
        opened: list[Events] = []
        try:
            await self._stream_from(opened, name, payload, prepared)
        finally:
            for events in opened:
                await self._closings.see_to(events.close())

    async def _stream_from(
        self, opened: list[Events], name: str, payload: Payload, prepared: Prepared
    ) -> None:
        def source(
            _: object,
            __: object,
            *,
            topic: str,
            groupId: str | None,  # noqa: N803  (the schema's name)
        ) -> Events:
            events = self._subscribing.stream(topic=topic, group=groupId or LIVE)
            opened.append(events)
            return events

        begun = subscribe(
            self._schema,
            prepared.document,
            variable_values=payload.variables,
            operation_name=payload.operationName or None,
            field_resolver=self._resolvers.resolve,
            subscribe_field_resolver=source,
        )
        found = await begun if inspect.isawaitable(begun) else begun
        if isinstance(found, ExecutionResult):
            await self._tell(name, answer_of(found))
            return
        results = cast("AsyncGenerator[ExecutionResult, None]", found)
        try:
            async for result in results:
                await self._tell(name, answer_of(result))
        except AngariumError as error:
            shown = refusal(error)
            await self._tell(name, {"data": None, **shown})
        except GraphQLError as error:
            await self._tell(name, {"data": None, **refusal(error.original_error or error)})
        finally:
            await results.aclose()

    async def _tell(self, name: str, answer: dict[str, Any]) -> None:
        await self._say({"type": self._words.data, "id": name, "payload": answer})

    async def _say(self, message: dict[str, Any]) -> None:
        await self._websocket.send(_encode(message))
