"""Whoever does not read holds up whoever writes, and nobody else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.grpc.serving import ByHand, Serving, serving
from tests.on_a_loop import eventually
from tests.unit.wire.http2.client_bytes import data

from angarium.wire.grpc import CallLimits, streaming, unary
from angarium.wire.grpc.messages import framed
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import Setting

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire.grpc import Call, Requests
    from angarium.wire.http2.server import Http2Socket

WINDOW = CallLimits().http2.window_bytes
HIGH = CallLimits().http2.write_bytes_high
MESSAGE = bytes(30_000)
MESSAGE_100K = bytes(100_000)


async def echo(message: bytes, _: Call) -> bytes:
    return message


@pytest.mark.parametrize("size", [1_000, 30_000, 300_000])
def test_a_handler_that_does_not_read_stops_its_client_at_the_window(
    run: Runner, size: int
) -> None:
    async def story() -> None:
        message, count = bytes(size), 3_000_000 // size
        may_read = asyncio.Event()
        messages: list[bytes] = []

        async def slow(requests: Requests, _: Call) -> bytes:
            await may_read.wait()
            messages.extend([message async for message in requests])
            return b"done"

        async with serving({"/slow": streaming(slow), "/echo": unary(echo)}) as it:
            call = it.stream("/slow")

            async def write() -> None:
                for _ in range(count):
                    await call.write(message)
                await call.done_writing()

            writing = asyncio.create_task(write())
            await eventually(lambda: it.server.received_bytes > WINDOW - size)
            # One message may be larger than the window. Other calls of the same connection go on
            # meanwhile, and the slow one stays put.
            for _ in range(20):
                assert await it.unary("/echo")(MESSAGE) == MESSAGE
                assert it.server.received_bytes <= WINDOW + size + 5 + len(MESSAGE) + 5
            assert not writing.done()
            may_read.set()
            assert await call.read() == b"done"
            await writing
            assert messages == [message] * count
            assert it.server.received_bytes == 0

    run(story())


def test_one_that_reads_together_lets_its_client_go_on(run: Runner) -> None:
    async def story() -> None:
        async def count(requests: Requests, call: Call) -> None:
            while found := await requests.together():
                await call.write(b"%d" % sum(map(len, found)))

        async with serving(streaming(count)) as it:
            call = it.stream()
            total = 0
            for _ in range(100):
                await call.write(MESSAGE)
                total += int(await call.read())
            assert total == 100 * len(MESSAGE)
            await call.done_writing()
            assert it.server.received_bytes == 0

    run(story())


def test_messages_that_are_written_together_arrive_one_by_one(run: Runner) -> None:
    async def story() -> None:
        messages = [bytes((number % 251,)) * (number * 37 % 3_000) for number in range(300)]

        async def all_at_once(_: Requests, call: Call) -> None:
            await call.write_all(messages[:100])
            await call.write_all(messages[100:])

        async with serving(streaming(all_at_once)) as it:
            call = it.stream()
            assert [message async for message in call] == messages

    run(story())


def test_a_message_larger_than_the_window_arrives(run: Runner) -> None:
    async def story() -> None:
        async def first(requests: Requests, _: Call) -> bytes:
            return await anext(requests)

        message = bytes(range(256)) * 8_192
        async with serving({"/unary": unary(echo), "/stream": streaming(first)}) as it:
            assert await it.unary("/unary")(message) == message
            call = it.stream("/stream")
            await call.write(message)
            assert await call.read() == message

    run(story())


def test_a_client_that_does_not_read_stops_the_handler_that_writes(run: Runner) -> None:
    async def story() -> None:
        written: list[int] = []

        async def talkative(_: Requests, call: Call) -> None:
            for one in range(10):
                await call.write(bytes(500))
                written.append(one)

        async with serving({"/talk": streaming(talkative), "/echo": unary(echo)}) as it:
            client = await it.dialled((Setting.INITIAL_WINDOW_SIZE, 1_100))
            client.call(1, path="/talk")
            await eventually(lambda: written == [0, 1])
            await it.round_trips(client)
            assert written == [0, 1]
            client.call(3, path="/echo")
            client.say(data(3, framed(b"meanwhile"), ends=True))
            assert (await client.trailers(3))[b"grpc-status"] == b"0"
            client.say(h2.window_update(1, 505))
            await eventually(lambda: written == [0, 1, 2])
            client.say(h2.window_update(1, 10_000))
            assert (await client.trailers(1))[b"grpc-status"] == b"0"
            assert len(written) == 10

    run(story())


def test_a_client_that_reads_nothing_from_its_socket_stops_it_too(run: Runner) -> None:
    async def story() -> None:
        written: list[int] = []

        async def talkative(_: Requests, call: Call) -> None:
            for one in range(400):
                await call.write(MESSAGE_100K)
                written.append(one)

        async with serving(streaming(talkative)) as it:
            client = await it.dialled((Setting.INITIAL_WINDOW_SIZE, h2.WINDOW_MAX))
            client.say(h2.window_update(0, h2.WINDOW_MAX - 65_535))
            client.call(1)
            other = await it.dialled()
            await at_rest(it, other, written)
            # 40 MB do not fit into what sockets and we hold for one client, and what we hold is
            # bounded by its limit and the one message that crossed it.
            assert 0 < len(written) < 400
            (held,) = [one for one in sockets_of(it) if not one.is_writable]
            assert held.unread_bytes <= HIGH + len(MESSAGE_100K) + h2.HEAD_BYTES * 8
            assert (await client.trailers(1))[b"grpc-status"] == b"0"
            assert len(written) == 400

    run(story())


async def at_rest(it: Serving, other: ByHand, written: list[int]) -> None:
    """Return when a handler writes no more, though the server has time for others."""
    before = -1
    while before != len(written) or all(one.is_writable for one in sockets_of(it)):
        before = len(written)
        await it.round_trips(other)


def sockets_of(it: Serving) -> set[Http2Socket]:
    return it.server._server.sockets
