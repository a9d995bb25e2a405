"""WebSockets: subscriptions with credit, publishes, and what does not belong on one."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import websockets
from tests.component.doors.http.opened_http import LOCALHOST, Opened, opened
from tests.on_a_loop import eventually, run
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from angarium.doors.http import HttpLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from websockets.protocol import Event


class Counting(ClientConnection):
    """A client that counts how often it is asked whether it is still there."""

    pings = 0

    def process_event(self, event: Event) -> None:
        self.pings += isinstance(event, Frame) and event.opcode is Opcode.PING
        super().process_event(event)


@asynccontextmanager
async def socket(door: Opened, **more: Any) -> AsyncIterator[Any]:
    async with connect(f"ws://{LOCALHOST}:{door.port}/v1/socket", proxy=None, **more) as found:
        yield found


async def say(ws: Any, **message: Any) -> None:
    await ws.send(json.dumps(message))


async def hear(ws: Any) -> Any:
    return json.loads(await ws.recv())


async def values(ws: Any, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        message = await hear(ws)
        assert message["type"] == "records", message
        found += [one["value"] for one in message["records"]]
    return found


def test_records_are_published_and_received_on_one_socket() -> None:
    async def story() -> None:
        async with opened() as door, socket(door, subprotocols=["angarium.v1"]) as ws:
            assert ws.subprotocol == "angarium.v1"
            await say(ws, type="subscribe", id="s", topic="orders")
            assert (await hear(ws))["type"] == "subscribed"
            for number in range(20):
                await say(ws, type="publish", id=str(number), topic="orders", record={"value": "v"})
            seen = {"published": 0, "records": 0}
            while min(seen.values()) < 20:
                message = await hear(ws)
                seen[message["type"]] += len(message.get("records", [1]))
            assert seen == {"published": 20, "records": 20}

    run(story())


def test_credit_holds_records_back_and_a_position_goes_on_elsewhere() -> None:
    async def story() -> None:
        async with opened() as door:
            for number in range(10):
                await door.ask(
                    "POST", "/v1/topics/orders/records?partition=0", {"value": str(number)}
                )
            subscribe = {"type": "subscribe", "id": "s", "topic": "orders", "partition": 0}
            async with socket(door) as ws:
                await say(ws, **subscribe, start="earliest", credit=3)
                assert (await hear(ws))["position"] == "0"
                position = ""
                for _ in range(3):
                    position = (await hear(ws))["position"]
                # Answers come in order: no record is on its way where this one is the next.
                await say(ws, type="unsubscribe", id="nobody")
                assert (await hear(ws))["id"] == "nobody"
                await say(ws, type="credit", id="s", records=2)
                assert await values(ws, 2) == ["3", "4"]
            async with socket(door) as ws:
                await say(ws, **subscribe, position=position)
                await hear(ws)
                assert await values(ws, 7) == [str(n) for n in range(3, 10)]
                await say(ws, type="unsubscribe", id="s")
                assert await hear(ws) == {"type": "ended", "id": "s"}
            await eventually(lambda: not door.broker.subscriptions)

    run(story())


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "INVALID_ARGUMENT"),
        ('{"type": "dance", "id": "x"}', "INVALID_ARGUMENT"),
        ('{"type": "subscribe", "id": "x", "topic": "nowhere"}', "NOT_FOUND"),
        ('{"type": "subscribe", "id": "x", "id": "y", "topic": "orders"}', "INVALID_ARGUMENT"),
        ('{"type": "unsubscribe", "id": "x"}', "NOT_FOUND"),
        ('{"type": "consume", "id": "x", "group": "g", "topics": ["t"]}', "UNSUPPORTED_OPERATION"),
        (
            '{"type": "publish", "id": "x", "topic": "orders", "partition": 9, "record": {}}',
            "NOT_FOUND",
        ),
    ],
)
def test_what_makes_no_sense_is_answered_and_the_socket_goes_on(message: str, code: str) -> None:
    async def story() -> None:
        async with opened() as door, socket(door) as ws:
            await ws.send(message)
            answer = await hear(ws)
            assert (answer["type"], answer["code"]) == ("error", code)
            await say(ws, type="subscribe", id="s", topic="orders")
            assert (await hear(ws))["type"] == "subscribed"

    run(story())


def test_a_wrong_message_is_answered_under_its_own_id() -> None:
    """Whoever waits for an answer under it would wait for ever."""

    async def story() -> None:
        async with opened() as door, socket(door) as ws:
            mistakes: list[dict[str, Any]] = [
                {"type": "publish", "topic": "orders", "partition": -1, "record": {}},
                {"type": "publish", "topic": "orders", "mode": "loud", "record": {}},
                {"type": "subscribe", "topic": "orders", "credit": 0},
                {"type": "dance"},
                {},
            ]
            for number, wrong in enumerate(mistakes):
                await say(ws, id=f"n{number}", **wrong)
                answer = await hear(ws)
                assert (answer["type"], answer["id"]) == ("error", f"n{number}")
                assert answer["code"] == "INVALID_ARGUMENT"
            for nameless in ("{", "[]", '{"type": "publish", "id": 5}'):
                await ws.send(nameless)
                assert (await hear(ws))["id"] == ""

    run(story())


def test_messages_that_are_too_long_or_no_text_end_the_socket() -> None:
    async def story() -> None:
        async with opened(HttpLimits(message_bytes_max=1_000)) as door:
            for message, code in (("x" * 2_000, 1009), (b"bytes", 1003)):
                async with socket(door) as ws:
                    await ws.send(message)
                    with pytest.raises(websockets.ConnectionClosedError) as ended:
                        await ws.recv()
                    assert ended.value.rcvd is not None
                    assert ended.value.rcvd.code == code

    run(story())


def test_a_client_that_vanished_is_noticed_and_one_that_answers_stays() -> None:
    async def story() -> None:
        async with (
            opened(HttpLimits(heartbeat_seconds=0.05)) as door,
            socket(door, create_connection=Counting) as ws,
        ):
            await say(ws, type="subscribe", id="s", topic="orders")
            await hear(ws)
            await eventually(lambda: ws.pings >= 8)
            assert len(door.door.server.streams) == 1  # the client's library answers pings
            ws.transport.pause_reading()
            await eventually(lambda: not door.door.server.streams)
            await eventually(lambda: not door.broker.subscriptions)

    run(story())


def test_a_page_from_elsewhere_gets_no_socket_and_others_need_a_real_upgrade() -> None:
    async def story() -> None:
        async with opened() as door:
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with socket(door, origin="https://evil.example.org"):
                    pass
            assert refused.value.response.status_code == 403
            plain = await door.ask("GET", "/v1/socket")
            assert plain.status == 426

    run(story())


def test_a_closing_door_says_goodbye() -> None:
    async def story() -> None:
        async with opened() as door, socket(door) as ws:
            await door.door.stop(grace_s=2.0)
            with pytest.raises(websockets.ConnectionClosed) as ended:
                await ws.recv()
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 1001

    run(story())
