"""A client that asks and never reads: what waits for it is bounded, and it is cut after a time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

import pytest
from tests.component.doors.http.opened_http import opened, request_bytes
from tests.floods.frames import Cell, Proof, opening, socket_frame
from tests.on_a_loop import eventually, run

from angarium.doors.http import HttpLimits
from angarium.wire.flooding import Door

if TYPE_CHECKING:
    from tests.component.doors.http.opened_http import Opened, Wire

HIGH = 64 << 10
MANY = 1 << 30
STALLED_S = 1.0
LIMITS = HttpLimits(write_bytes_high=HIGH, stalled_seconds_max=STALLED_S, control_frames_max=MANY)
UPGRADE = opening(Cell(Door.WEBSOCKET, "ping", False), Proof("", ""))[0]
PING = socket_frame(0x89, bytes(125))
ASKED = request_bytes("GET", "/v1/openapi.json")
UNKNOWN = socket_frame(0x81, b'{"type":"unsubscribe","id":"' + b"x" * 64 + b'"}')


async def deaf(door: Opened) -> Wire:
    """Connect, and read nothing beyond a little."""
    wire = await door.connect()
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
    return wire


@pytest.mark.parametrize(
    ("first", "again", "slack"),
    [
        pytest.param(UPGRADE, PING * 50, 256 * 127, id="pings"),
        pytest.param(UPGRADE, UNKNOWN * 50, 256 * 1_024, id="mistakes"),
        pytest.param(b"", ASKED, 1 << 20, id="requests sent ahead"),
    ],
)
def test_what_a_client_does_not_read_is_bounded_and_it_is_cut(
    first: bytes, again: bytes, slack: int
) -> None:
    async def story() -> None:
        async with opened(LIMITS) as door:
            wire = await deaf(door)
            server = door.door.server
            await eventually(lambda: len(server.connections) == 1)
            (connection,) = server.connections
            assert connection._transport is not None
            raw = connection._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 10)
            if first:
                await wire.say(first)
                await eventually(lambda: bool(server.streams))
            most = 0

            async def ask_on() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        await wire.say(again)
                        await asyncio.sleep(0)

            asking = asyncio.ensure_future(ask_on())
            while server.connections:
                most = max(most, connection.unread_bytes)
                assert not asking.done() or not server.connections or connection.is_stuck
                await asyncio.sleep(0.001)
            assert HIGH < most < HIGH + slack
            asking.cancel()
            assert (await door.ask("GET", "/healthz")).status == 200

    run(story())


def test_a_client_that_reads_again_goes_on_where_it_was() -> None:
    async def story() -> None:
        async with opened(LIMITS) as door:
            wire = await deaf(door)
            server = door.door.server
            count = 0
            await eventually(lambda: len(server.connections) == 1)
            (connection,) = server.connections
            while not connection.is_stuck:
                wire.writer.write(ASKED)
                count += 1
                await asyncio.sleep(0)
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(count):
                assert (await wire.hear()).status == 200
            assert not connection.is_stuck

    run(story())


def test_pings_among_messages_are_answered_however_they_come() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            await wire.say(UPGRADE)
            await wire.reader.readuntil(b"\r\n\r\n")
            said = b"".join(socket_frame(0x89, b"%d" % one) for one in range(1_000))
            await wire.say(said)
            heard = await wire.reader.readexactly(len(said) - 4 * 1_000)
            assert heard == b"".join(b"\x8a%c%d" % (len(str(one)), one) for one in range(1_000))

    run(story())


def test_messages_that_are_answered_with_an_error_end_a_socket_and_others_do_not() -> None:
    async def story() -> None:
        async with opened(HttpLimits(control_frames_max=1_000)) as door:
            good, bad = await door.connect(), await door.connect()
            for wire in (good, bad):
                await wire.say(UPGRADE)
                await wire.reader.readuntil(b"\r\n\r\n")
            publish = b'{"type":"publish","id":"1","topic":"orders","record":{"value":"x"}}'
            sending = asyncio.ensure_future(good.say(socket_frame(0x81, publish) * 3_000))
            with contextlib.suppress(OSError):
                while len(door.door.server.connections) == 2:
                    await bad.say(UNKNOWN * 100)
                    await asyncio.sleep(0.001)
            answers = 0
            while answers < 3_000:
                answers += (await good.reader.read(1 << 16)).count(b'"published"')
            await sending

    run(story())
