"""What somebody unknown may make the HTTP door keep: few sockets, few bytes, and nobody's room."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import websockets
from tests.component.doors.http.opened_http import LOCALHOST
from tests.component.doors.http.test_who_asks import Guarded, basic, guarded
from tests.floods.frames import Cell, Proof, opening
from tests.on_a_loop import eventually, run

from angarium.doors.callers import Callers
from angarium.doors.http import HttpDoor, HttpLimits
from angarium.wire.flooding import Door

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RIGHT = basic("alice", "right")
PROOF = {"type": "authenticate", "id": "0", "user": "alice", "password": "right"}


@asynccontextmanager
async def limited(**limits: int) -> AsyncIterator[Guarded]:
    async with guarded() as it:
        await it.door.stop(grace_s=0)
        callers = it.door._faces.callers
        assert isinstance(callers, Callers)
        it.door = HttpDoor(callers, host=LOCALHOST, port=0, limits=HttpLimits(**limits))
        it.port = await it.door.start()
        yield it


async def said(it: Guarded, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(LOCALHOST, it.port)
    writer.write(data)
    return reader, writer


def head(length: int, authorization: str | None, *more: str) -> bytes:
    lines = ["POST /v1/topics/orders/records HTTP/1.1", "Host: localhost", *more]
    lines.append(f"Content-Length: {length}")
    if authorization is not None:
        lines.append(f"Authorization: {authorization}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_body_without_a_proof_is_refused_before_it_is_read() -> None:
    async def check() -> None:
        async with limited() as it:
            for more in ((), ("Expect: 100-continue",)):
                reader, writer = await said(it, head(1_000_000, None, *more))
                # Nothing of the body has been sent, and the answer is there.
                assert b"401" in await reader.readline()
                rest = await reader.read()
                assert b"WWW-Authenticate" in rest
                assert b"UNAUTHENTICATED" in rest
                writer.close()
            assert it.door.server.unproven_bytes == 0

    run(check())


def test_bodies_of_who_is_not_known_are_bounded_together_and_others_are_served() -> None:
    async def check() -> None:
        async with limited(unproven_bytes_max=100_000) as it:
            known = await it.ask("GET", "/v1/topics", Authorization=RIGHT)
            assert known.status == 200
            held = []
            for number in range(3):
                guess = basic(f"user-{number}", "guess")
                held.append(await said(it, head(40_000, guess) + bytes(30_000)))
            await eventually(lambda: it.door.server.unproven_bytes == 90_000)
            reader, writer = await said(it, head(40_000, basic("mallory", "x")) + bytes(30_000))
            assert b"429" in await reader.readline()
            assert b"unproven_bytes_max" in await reader.read()
            writer.close()
            # Who is known is not concerned, however much it sends.
            record = {"value": "x" * 200_000}
            done = await it.ask("POST", "/v1/topics/orders/records", record, Authorization=RIGHT)
            assert done.status == 200
            for _, one in held:
                one.close()
            await eventually(lambda: it.door.server.unproven_bytes == 0)
            # Somebody new, whose proof takes work, is served once that is done.
            bob = basic("bob", "b")
            done = await it.ask("POST", "/v1/topics/orders/records", record, Authorization=bob)
            assert done.status in {200, 429}
            assert it.door.server.unproven_bytes == 0

    run(check())


@pytest.mark.parametrize("path", ["/v1/socket", "/graphql"])
def test_guests_shut_nobody_out_and_take_no_place_of_a_stream(path: str) -> None:
    async def check() -> None:
        async with limited(guests_max=3, streams_max=2) as it:
            protocols: Any = ["graphql-transport-ws"] if path == "/graphql" else None
            guests = [await it.socket(path, subprotocols=protocols) for _ in range(5)]
            server = it.door.server
            assert (len(server.guests), len(server.streams)) == (3, 0)
            for one in guests[:2]:
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await one.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1013
            async with it.socket("/v1/socket") as mine:
                await mine.send(json.dumps(PROOF))
                assert json.loads(await mine.recv())["type"] == "authenticated"
                assert (len(server.guests), len(server.streams)) == (2, 1)
            for one in guests[2:]:
                await one.close()
            await eventually(lambda: not server.guests and not server.streams)

    run(check())


def test_who_has_said_who_it_is_finds_no_room_among_too_many_streams() -> None:
    async def check() -> None:
        async with limited(streams_max=1) as it:
            first = it.socket("/v1/socket", additional_headers={"Authorization": RIGHT})
            async with first, it.socket("/v1/socket") as second:
                await second.send(json.dumps(PROOF))
                told = json.loads(await second.recv())
                assert (told["type"], told["limit"]) == ("error", "streams_max")

    run(check())


def test_a_guests_first_message_is_short_and_those_behind_its_login_need_not_be() -> None:
    async def check() -> None:
        async with limited() as it:
            async with it.socket("/v1/socket") as ws:
                await ws.send("x" * 40_000)
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await ws.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1009
            async with it.socket("/v1/socket") as ws:
                await ws.send(json.dumps(PROOF))
                long = {"type": "publish", "id": "1", "topic": "orders", "value": "x" * 100_000}
                await ws.send(json.dumps(long))
                assert json.loads(await ws.recv())["type"] == "authenticated"
                assert json.loads(await ws.recv())["id"] == "1"

    run(check())


def test_a_message_that_dribbles_in_before_login_ends_its_connection() -> None:
    async def check() -> None:
        async with limited(control_frames_max=100) as it:
            cell = Cell(Door.WEBSOCKET, "ping", False)
            (upgrade,) = opening(cell, Proof("", ""))
            reader, writer = await said(it, upgrade)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"\x81\xfe" + (30_000).to_bytes(2) + bytes(4))
            ended = asyncio.ensure_future(reader.read())
            for _ in range(29_000):
                await asyncio.sleep(0.001)
                if ended.done():
                    break
                writer.write(b"a")
            # What was written behind the end may have reset the connection before that was read.
            with suppress(ConnectionResetError):
                assert (await asyncio.wait_for(ended, 10))[2:4] == (1008).to_bytes(2)
            assert ended.done()
            writer.close()

    run(check())
