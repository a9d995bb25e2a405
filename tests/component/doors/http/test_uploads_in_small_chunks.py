"""A logged-in client may send a body in small chunks; before login, and tiny, they are a flood."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.component.doors.http.test_guests_and_bodies import RIGHT, limited
from tests.component.doors.http.test_who_asks import basic
from tests.on_a_loop import run

from angarium.wire.flooding import gate_of

HEAD = (
    "POST /v1/topics/orders/records HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n"
    "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LINE = b'{"value": "%024d"}\n'
CHUNKS = 20_000


async def uploaded(port: int, authorization: str, chunks: list[bytes]) -> bytes:
    """Return the first line of the answer to a body that is sent in these chunks."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write((HEAD % authorization).encode())
        for at in range(0, len(chunks), 50):
            writer.write(
                b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in chunks[at : at + 50])
            )
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        return await reader.readline()
    finally:
        writer.close()


def test_a_logged_in_upload_of_many_small_chunks_is_no_flood() -> None:
    async def check() -> None:
        async with limited(control_frames_max=1_000) as it:
            assert (await it.ask("GET", "/v1/topics", Authorization=RIGHT)).status == 200
            chunks = [LINE % number for number in range(CHUNKS)]
            assert max(map(len, chunks)) < 64
            assert b"200" in await uploaded(it.port, RIGHT, chunks)
            assert gate_of(asyncio.get_running_loop()).turns == 0

    run(check())


def test_the_first_upload_of_a_client_is_no_flood_either_once_its_login_was_checked() -> None:
    async def check() -> None:
        async with limited(control_frames_max=1_000) as it:
            chunks = [LINE % number for number in range(CHUNKS)]
            assert b"200" in await uploaded(it.port, RIGHT, chunks)

    run(check())


def test_an_upload_in_small_chunks_with_a_guess_is_read_as_a_flood() -> None:
    """Refused at once, its client would connect again and have its first read for free."""

    async def check() -> None:
        async with limited(control_frames_max=1_000) as it:
            chunks = [LINE % number for number in range(200)]
            assert b"401" in await uploaded(it.port, basic("mallory", "guess"), chunks)
            assert gate_of(asyncio.get_running_loop()).turns > 0
            with suppress(ConnectionError):
                answer = await uploaded(it.port, basic("mallory", "guess"), chunks * 20)
                assert b"429" in answer or not answer
            assert it.door.server.unproven_bytes == 0

    run(check())


@pytest.mark.parametrize("who", [RIGHT, basic("mallory", "guess")], ids=["known", "guess"])
def test_tiny_chunks_end_the_connection(who: str) -> None:
    async def check() -> None:
        async with limited(control_frames_max=1_000) as it:
            assert (await it.ask("GET", "/v1/topics", Authorization=RIGHT)).status == 200
            try:
                answer = await uploaded(it.port, who, [b" "] * CHUNKS)
            except ConnectionError:
                return
            assert b"429" in answer or b"401" in answer or not answer

    run(check())
