"""The server under the door: keep-alive, requests sent ahead, and every limit."""

from __future__ import annotations

import asyncio
import time
from itertools import chain, repeat
from typing import TYPE_CHECKING

import pytest
from tests.component.doors.http.opened_http import opened, request_bytes
from tests.on_a_loop import eventually, run

from angarium.doors.http import HttpLimits
from angarium.wire.descriptors import Descriptors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.component.doors.http.opened_http import Wire

RECORDS = "/v1/topics/orders/records?partition=0"


def test_requests_sent_ahead_are_answered_in_order() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            await wire.say(
                b"".join(request_bytes("POST", RECORDS, {"value": str(n)}) for n in range(50))
            )
            offsets = [(await wire.hear()).json["offset"] for _ in range(50)]
            assert offsets == list(range(50))

    run(story())


def test_a_request_may_come_byte_by_byte_and_in_chunks() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            for byte in request_bytes("POST", RECORDS, {"value": "slow"}):
                await wire.say(bytes([byte]))
            assert (await wire.hear()).status == 200
            await wire.say(
                f"POST {RECORDS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".encode()
            )
            assert (await wire.hear()).json["offset"] == 1

    run(story())


def test_whoever_asks_before_sending_is_told_to_go_on() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            request = request_bytes(
                "POST", RECORDS, {"value": "x"}, headers={"Expect": "100-continue"}
            )
            head, _, body = request.partition(b"\r\n\r\n")
            await wire.say(head + b"\r\n\r\n")
            assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await wire.say(body)
            assert (await wire.hear()).status == 200

    run(story())


def test_a_connection_is_closed_when_the_client_wants_it() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            answer = await door.ask("GET", "/v1/topics", headers={"Connection": "close"}, wire=wire)
            assert answer.headers["connection"] == "close"
            assert await wire.is_closed()
            old = await door.connect()
            await old.say(b"GET /v1/topics HTTP/1.0\r\n\r\n")
            assert (await old.hear()).status == 200
            assert await old.is_closed()

    run(story())


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20_000, 431),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n", 415),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"fffffff\r\n" + b"a" * 5_000_000,
            413,
        ),
    ],
)
def test_what_is_no_request_or_too_much_of_one_is_refused_and_the_connection_ends(
    said: bytes, status: int
) -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            wire.writer.write(said)
            answer = await wire.hear()
            assert answer.status == status
            assert answer.json["code"] in ("INVALID_ARGUMENT", "TOO_LARGE")
            assert await wire.is_closed()
            assert (await door.ask("GET", "/v1/topics")).status == 200

    run(story())


def test_a_client_that_is_too_slow_is_told_and_cut() -> None:
    async def story() -> None:
        limits = HttpLimits(head_seconds_max=0.1, body_seconds_max=0.1, idle_seconds_max=0.3)
        async with opened(limits) as door:
            for said in (
                b"GET / HT",
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
            ):
                wire = await door.connect()
                await wire.say(said)
                assert (await wire.hear()).status == 408
                assert await wire.is_closed()
            silent = await door.connect()
            assert await silent.is_closed()

    run(story())


def test_a_request_that_takes_too_long_is_answered_as_one_whose_outcome_is_unknown() -> None:
    async def story() -> None:
        async with opened(HttpLimits(request_seconds_max=0.1)) as door:
            door.broker.hang = asyncio.Event()
            for method, target, body in (
                ("POST", RECORDS, {"value": "x"}),
                ("GET", "/v1/topics", None),
            ):
                answer = await door.ask(method, target, body)
                assert (answer.status, answer.json["code"]) == (504, "DEADLINE_EXCEEDED")
            assert door.broker.cancelled == 1  # the reading; a publish may still happen
            door.broker.hang.set()

    run(story())


def test_one_connection_too_many_is_told_so() -> None:
    async def story() -> None:
        async with opened(HttpLimits(connections_max=2)) as door:
            door.broker.hang = asyncio.Event()
            held = [asyncio.create_task(door.ask("GET", "/v1/topics")) for _ in range(2)]
            await eventually(lambda: door.door.server.requests == 2)
            answer = await (await door.connect()).hear()
            assert (answer.status, answer.json["limit"]) == (503, "connections_max")
            door.broker.hang.set()
            assert [(await one).status for one in held] == [200, 200]

    run(story())


def test_connections_that_say_nothing_shut_nobody_out() -> None:
    async def story() -> None:
        async with opened(HttpLimits(connections_max=3)) as door:
            first, second, third = [await door.connect() for _ in range(3)]
            for wire in (second, first, third):
                assert (await door.ask("GET", "/v1/topics", wire=wire)).status == 200
                answered = time.monotonic()
                await eventually(lambda: time.monotonic() > answered + 0.01)  # noqa: B023
            assert (await door.ask("GET", "/v1/topics")).status == 200
            assert await second.is_closed(), "it had waited the longest"
            assert (await door.ask("GET", "/v1/topics", wire=first)).status == 200

    run(story())


def test_where_few_descriptors_are_left_only_who_has_asked_nothing_makes_room() -> None:
    async def story() -> None:
        async with opened() as door:
            first, silent = [await door.connect() for _ in range(2)]
            assert (await door.ask("GET", "/v1/topics", wire=first)).status == 200
            await eventually(lambda: len(door.door.server.connections) == 2)
            door.door.server.descriptors = Descriptors(100, lambda: 80)
            third = await door.connect()
            assert (await door.ask("GET", "/v1/topics", wire=third)).status == 200
            assert await silent.is_closed()
            answer = await (await door.connect()).hear()
            assert (answer.status, answer.json["limit"]) == (503, "descriptors")
            assert (await door.ask("GET", "/v1/topics", wire=first)).status == 200

    run(story())


async def say_all(wire: Wire, parts: Iterable[bytes]) -> None:
    for part in parts:
        await wire.say(part)


CHUNKED = (
    f"POST {RECORDS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
).encode()
STREAM = request_bytes("GET", "/v1/topics/orders/stream")
ASKED = request_bytes("GET", "/v1/topics")


@pytest.mark.parametrize(
    ("first", "again"),
    [
        pytest.param(CHUNKED, b"4000\r\n" + b"a" * 0x4000 + b"\r\n", id="data"),
        pytest.param(CHUNKED + b"1;", b"a" * 0x4000, id="an extension"),
        pytest.param(CHUNKED, b"1;" + b"a" * 0x4000 + b"\r\nx\r\n", id="extensions"),
        pytest.param(CHUNKED + b"0\r\nA: ", b"a" * 0x4000, id="a trailer"),
        pytest.param(CHUNKED + b"0\r\n", b"Abc: def\r\n" * 1_000, id="trailers"),
        pytest.param(ASKED + CHUNKED + b"1;", b"a" * 0x4000, id="sent ahead"),
        pytest.param(STREAM + CHUNKED + b"1;", b"a" * 0x4000, id="during a stream"),
        pytest.param(STREAM, b"\r\n" * 0x2000, id="nothing during a stream"),
    ],
)
def test_a_body_without_end_is_not_read_without_end(first: bytes, again: bytes) -> None:
    async def story() -> None:
        async with opened(HttpLimits(body_bytes_max=64 << 10)) as door:
            wire = await door.connect()
            # What the kernel takes without anybody reading is some megabytes.
            said = chain([first], repeat(again, 10_000))
            with pytest.raises(ConnectionError):
                await say_all(wire, said)
            await eventually(lambda: not door.door.server.connections)
            assert (await door.ask("GET", "/v1/topics")).status == 200

    run(story())


def test_a_stream_is_not_spoilt_by_what_its_client_says() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            await wire.say(STREAM + ASKED + b"this is no request\r\n\r\n")
            assert (await wire.hear(has_body=False)).status == 200
            await door.ask("POST", RECORDS, {"value": "heard"})
            assert b"heard" in await wire.reader.readuntil(b"heard")
            wire.writer.close()
            await eventually(lambda: not door.door.server.streams)

    run(story())


def test_a_request_of_which_half_was_sent_ahead_is_answered() -> None:
    async def story() -> None:
        async with opened() as door:
            said = request_bytes("POST", RECORDS, {"value": "x"})
            for cut in (10, len(said) - 3):
                wire = await door.connect()
                await wire.say(said + said[:cut])
                assert (await wire.hear()).status == 200
                await wire.say(said[cut:])
                assert (await wire.hear()).status == 200

    run(story())


def test_half_a_request_that_was_sent_ahead_is_held_to_its_time() -> None:
    async def story() -> None:
        limits = HttpLimits(head_seconds_max=0.1, body_seconds_max=0.1)
        async with opened(limits) as door:
            said = request_bytes("POST", RECORDS, {"value": "x"})
            for cut in (10, len(said) - 3):
                wire = await door.connect()
                await wire.say(said + said[:cut])
                assert (await wire.hear()).status == 200
                assert (await wire.hear()).status == 408

    run(story())


def test_one_request_too_many_is_told_so_and_others_go_on() -> None:
    async def story() -> None:
        async with opened(HttpLimits(requests_max=1)) as door:
            door.broker.hang = asyncio.Event()
            first = asyncio.create_task(door.ask("GET", "/v1/topics"))
            await eventually(lambda: door.door.server.requests == 1)
            answer = await door.ask("GET", "/v1/topics")
            assert (answer.status, answer.json["limit"]) == (429, "requests_max")
            door.broker.hang.set()
            assert (await first).status == 200
            assert door.door.server.requests == 0

    run(story())


def test_a_client_that_goes_away_cancels_what_was_done_for_it() -> None:
    async def story() -> None:
        async with opened() as door:
            door.broker.hang = asyncio.Event()
            wire = await door.connect()
            await wire.say(request_bytes("GET", "/v1/topics"))
            await eventually(lambda: door.door.server.requests == 1)
            wire.writer.transport.abort()
            await eventually(lambda: door.broker.cancelled == 1)
            assert door.door.server.requests == 0

    run(story())


def test_a_closing_door_answers_what_is_under_way() -> None:
    async def story() -> None:
        async with opened() as door:
            door.broker.hang = asyncio.Event()
            idle = await door.connect()
            under_way = asyncio.create_task(door.ask("GET", "/v1/topics"))
            await eventually(lambda: door.door.server.requests == 1)
            closing = asyncio.create_task(door.door.stop(grace_s=5.0))
            assert await idle.is_closed()
            door.broker.hang.set()
            assert (await under_way).status == 200
            await closing

    run(story())


def test_whoever_speaks_http2_is_told_where_that_is_spoken() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            settings = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
            await wire.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
            answer = await wire.hear()
            assert answer.status == 505
            assert "gRPC is at the node's gRPC port (7401" in answer.json["detail"]
            assert await wire.is_closed()

    run(story())
