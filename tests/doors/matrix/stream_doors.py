"""The doors that stream over HTTP: events, the WebSocket, and subscriptions of GraphQL."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from tests.doors.matrix.answers import ANSWER_S_MAX, Answer, Door
from tests.doors.matrix.http_client import HttpConnection
from tests.doors.matrix.rest_door import refusal
from tests.doors.matrix.rows import LETTERS
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.rows import Row
    from tests.doors.matrix.world import World
    from websockets.asyncio.client import ClientConnection

    from angarium.bench.cluster import BenchNode

STREAMS: Final = {"subscribe": "subscribe", "consume": "consume"}


class StreamDoor(Door):
    """A door where a group is made with the settings that it has by default."""

    @classmethod
    def has(cls, row: Row) -> bool:
        return super().has(row) and row.what != LETTERS

    async def close(self) -> None:
        """Nothing: there is a connection for each stream."""


def _topic_and_group(method: str, given: dict[str, Any]) -> tuple[str, str]:
    if method == "subscribe":
        return given["interests"][0].topic, ""
    return given["request"].topics[0], given["request"].group


class EventsDoor(StreamDoor):
    """One node's server-sent events."""

    name = "events"
    methods = STREAMS

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._node = node

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        return {"without a group": "subscribe", "with a group": "consume"}

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        topic, group = _topic_and_group(method, given)
        query = f"group={quote(group)}" if group else "start=earliest"
        connection = HttpConnection(self._node.http)
        try:
            answer = await connection.ask(
                "GET",
                f"/v1/topics/{quote(topic)}/stream?{query}",
                headers={"Authorization": caller.authorization(self._world.token)},
                is_stream=True,
            )
        finally:
            await connection.close()
        return refusal(answer) if answer.status >= 400 else Answer()


class SocketDoor(StreamDoor):
    """One node's WebSocket; who comes says who it is in the first message."""

    name = "WebSocket"
    methods: ClassVar = {**STREAMS, "publish": "publish"}

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._url = f"ws://{node.http}/v1/socket"

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        within = dict.fromkeys(("settle", "credit", "unsubscribe"), "")  # of what was consumed
        return {**{one: one for one in cls.methods}, **within, "authenticate": ""}

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        said: dict[str, Any] = {"type": method, "id": "x"}
        if method == "publish":
            said |= {"topic": given["request"].topic, "record": {"value": "x"}}
        else:
            topic, group = _topic_and_group(method, given)
            said |= {"group": group, "topics": [topic]} if group else {"topic": topic}
        proof = caller.authorization(self._world.token)
        headers = {"Authorization": proof} if proof is not None else {}
        async with (
            asyncio.timeout(ANSWER_S_MAX),
            connect(
                self._url, proxy=None, open_timeout=ANSWER_S_MAX, additional_headers=headers
            ) as socket,
        ):
            await socket.send(json.dumps(said))
            told = json.loads(await socket.recv())
        if told["type"] == "error":
            return Answer(code=told["code"], text=told["detail"])
        assert told["type"] in {"subscribed", "published"}, told
        return Answer()


class GraphqlSubscriptions(StreamDoor):
    """One node's subscriptions of GraphQL; who comes says who it is in `connection_init`."""

    name = "GraphQL subscriptions"
    methods = STREAMS
    before: ClassVar = {"consume": "describe_topic"}

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._url = f"ws://{node.http}/graphql"

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        return {"subscribe": "subscribe", "subscribe with a group": "consume"}

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        topic, group = _topic_and_group(method, given)
        wanted = group or "__REPLAY__"
        query = f'subscription {{ subscribe(topic: "{topic}", groupId: "{wanted}") {{ id }} }}'
        proof = caller.authorization(self._world.token)
        protocol = Subprotocol("graphql-transport-ws")
        async with (
            asyncio.timeout(ANSWER_S_MAX),
            connect(
                self._url, proxy=None, open_timeout=ANSWER_S_MAX, subprotocols=[protocol]
            ) as socket,
        ):
            payload = {} if proof is None else {"Authorization": proof}
            await socket.send(json.dumps({"type": "connection_init", "payload": payload}))
            try:
                await socket.recv()
            except ConnectionClosed as closed:
                is_unproven = closed.rcvd is not None and closed.rcvd.code in {4401, 4403}
                return Answer(code="UNAUTHENTICATED" if is_unproven else str(closed))
            asked = {"id": "x", "type": "subscribe", "payload": {"query": query}}
            await socket.send(json.dumps(asked))
            told = json.loads(await self._heard(socket, topic if group else ""))
        errors = told["payload"].get("errors") if told["type"] == "next" else told["payload"]
        if errors:
            (error,) = errors
            return Answer(code=error["extensions"]["angariumCode"], text=error["message"])
        return Answer()

    async def _heard(self, socket: ClientConnection, topic: str) -> str | bytes:
        """Return what comes first: a group that has had everything is sent something new."""
        while topic:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    return await socket.recv()
            # Not where there is no topic: an administrator's publish would make it.
            if topic in self._world.there["list_topics"]:
                await self._world.client.publish(topic, b"something new")
        return await socket.recv()
