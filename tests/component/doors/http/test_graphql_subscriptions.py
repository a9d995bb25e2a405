"""GraphQL subscriptions, in both protocols."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import websockets
from tests.component.doors.http.opened_http import LOCALHOST, Opened, opened
from tests.on_a_loop import eventually, run
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NEW, OLD = "graphql-transport-ws", "graphql-ws"
SUBSCRIBE = """subscription($g: String! = "") {
  subscribe(topic: "orders", groupId: $g) { id payload offset } }"""


@asynccontextmanager
async def socket(door: Opened, protocol: str, *, introduced: bool = True) -> AsyncIterator[Any]:
    async with connect(
        f"ws://{LOCALHOST}:{door.port}/graphql", subprotocols=[Subprotocol(protocol)], proxy=None
    ) as ws:
        if introduced:
            await say(ws, type="connection_init")
            assert (await hear(ws))["type"] == "connection_ack"
        yield ws


async def say(ws: Any, **message: Any) -> None:
    await ws.send(json.dumps(message))


async def hear(ws: Any) -> Any:
    return json.loads(await ws.recv())


@pytest.mark.parametrize(
    ("protocol", "begin", "word", "end"),
    [
        (NEW, "subscribe", "next", "complete"),
        (OLD, "start", "data", "stop"),
    ],
)
def test_records_come_until_the_client_has_enough(
    protocol: str, begin: str, word: str, end: str
) -> None:
    async def story() -> None:
        async with opened() as door, socket(door, protocol) as ws:
            await say(ws, type=begin, id="1", payload={"query": SUBSCRIBE})
            await eventually(lambda: door.broker.subscriptions)
            for number in range(3):
                await door.ask(
                    "POST", "/v1/topics/orders/records?partition=1", {"value": str(number)}
                )
            for number in range(3):
                message = await hear(ws)
                assert (message["type"], message["id"]) == (word, "1")
                assert message["payload"]["data"]["subscribe"] == {
                    "id": f"orders/1/{number}",
                    "payload": str(number),
                    "offset": number,
                }
            await say(ws, type=end, id="1")
            await eventually(lambda: not door.broker.subscriptions)
            await say(ws, type=begin, id="2", payload={"query": "{ health }"})
            assert (await hear(ws))["payload"] == {"data": {"health": "ok"}}
            assert await hear(ws) == {"type": "complete", "id": "2"}

    run(story())


def test_a_replay_begins_at_the_start() -> None:
    async def story() -> None:
        async with opened(topics={"orders": 1}) as door, socket(door, NEW) as ws:
            for number in range(5):
                await door.ask("POST", "/v1/topics/orders/records", {"value": str(number)})
            payload = {"query": SUBSCRIBE, "variables": {"g": "__REPLAY__"}}
            await say(ws, type="subscribe", id="1", payload=payload)
            seen = [(await hear(ws))["payload"]["data"]["subscribe"]["payload"] for _ in range(5)]
            assert seen == ["0", "1", "2", "3", "4"]

    run(story())


def test_a_record_that_is_stored_nowhere_has_an_id_and_a_time_all_the_same() -> None:
    async def story() -> None:
        async with opened(topics={"orders": 1}) as door, socket(door, NEW) as ws:
            query = 'subscription { subscribe(topic: "orders") { id offset timestamp again: id } }'
            await say(ws, type="subscribe", id="1", payload={"query": query})
            await eventually(lambda: door.broker.subscriptions)
            for _ in range(2):
                target = "/v1/topics/orders/records?mode=performance"
                await door.ask("POST", target, {"value": "x"})
            seen = [(await hear(ws))["payload"]["data"]["subscribe"] for _ in range(2)]
            assert seen[0]["id"] != seen[1]["id"]
            for one in seen:
                assert one["offset"] is None
                assert one["again"] == one["id"]
                assert abs(one["timestamp"] - time.time()) < 60

    run(story())


def test_no_group_is_said_by_leaving_it_out_or_with_null() -> None:
    async def story() -> None:
        async with opened(topics={"orders": 1}) as door, socket(door, NEW) as ws:
            query = """subscription($g: String) {
              subscribe(topic: "orders", groupId: $g) { payload } }"""
            for name, variables in (("1", {}), ("2", {"g": None}), ("3", {"g": ""})):
                payload = {"query": query, "variables": variables}
                await say(ws, type="subscribe", id=name, payload=payload)
            await eventually(lambda: len(door.broker.subscriptions) == 3)
            await door.ask("POST", "/v1/topics/orders/records", {"value": "x"})
            told = [await hear(ws) for _ in range(3)]
            assert {one["id"] for one in told} == {"1", "2", "3"}
            assert all(one["payload"] == {"data": {"subscribe": {"payload": "x"}}} for one in told)

    run(story())


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("junk", 4400),
        ('{"type": "dance"}', 4400),
        ('{"type": "subscribe", "id": "1", "payload": {"query": "{health}"}}', 4401),
        ('{"type": "connection_init"} ', 4429),
    ],
)
def test_breaking_the_protocol_ends_the_socket_with_its_code(message: str, code: int) -> None:
    async def story() -> None:
        async with opened() as door, socket(door, NEW, introduced=code == 4429) as ws:
            await ws.send(message)
            with pytest.raises(websockets.ConnectionClosedError) as ended:
                await ws.recv()
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == code

    run(story())


def test_an_operation_that_cannot_begin_is_told_and_the_socket_goes_on() -> None:
    async def story() -> None:
        async with opened() as door, socket(door, NEW) as ws:
            await say(ws, type="subscribe", id="1", payload={"query": "{ nope }"})
            message = await hear(ws)
            assert (message["type"], message["id"]) == ("error", "1")
            assert message["payload"][0]["extensions"]["angariumCode"] == "INVALID_ARGUMENT"
            query = SUBSCRIBE.replace("orders", "nowhere")
            await say(ws, type="subscribe", id="2", payload={"query": query})
            message = await hear(ws)
            error = message["payload"]["errors"][0]
            assert error["extensions"]["angariumCode"] == "NOT_FOUND"
            assert (await hear(ws))["type"] == "complete"
            await say(ws, type="ping")
            assert await hear(ws) == {"type": "pong"}

    run(story())


def test_how_old_records_may_be_is_said_for_a_topic_and_for_no_group() -> None:
    async def story() -> None:
        async with opened() as door, socket(door, NEW) as ws:
            await door.ask("POST", "/v1/topics/orders/records?partition=1", {"value": "v"})
            bounded = """subscription($g: String! = "", $b: Long) {
              subscribe(topic: "orders", groupId: $g, maxStalenessMs: $b) { payload } }"""

            async def first(**variables: Any) -> Any:
                id_ = json.dumps(variables)
                payload = {"query": bounded, "variables": variables}
                await say(ws, type="subscribe", id=id_, payload=payload)
                while (message := await hear(ws))["id"] != id_:
                    pass
                return message

            read = await first(g="__REPLAY__", b=60_000)
            assert read["payload"]["data"]["subscribe"] == {"payload": "v"}
            for wrong in ({"g": "__REPLAY__", "b": -1}, {"g": "a-group", "b": 60_000}):
                assert "INVALID_ARGUMENT" in json.dumps(await first(**wrong))

    run(story())
