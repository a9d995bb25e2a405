"""Streams over a real socket: order, credit, half-close, cancel, limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.running import joined
from tests.on_a_loop import eventually

from angarium.errors import LimitExceeded, NotLeader
from angarium.wire import (
    ConnectionLost,
    Frame,
    Handlers,
    InvalidFrame,
    Stream,
    StreamCancelled,
    UnsupportedOperation,
    WireLimits,
)
from angarium.wire.frames import FrameKind

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

SMALL = WireLimits(stream_window_bytes=10_000)


async def echo(stream: Stream) -> None:
    async for frame in stream:
        await stream.send(frame.header, (frame.payload,))


def test_data_comes_back_in_order_and_ends(run: Runner) -> None:
    async def main() -> None:
        async with joined(Handlers(streams={1: echo}), limits=SMALL) as (client, server):
            stream = client.open_stream(1, b"opening", (b"more",))

            async def produce() -> None:
                for number in range(500):
                    await stream.send(b"%d" % number, (bytes(number),))
                stream.end()

            producing = asyncio.ensure_future(produce())
            received = [frame async for frame in stream]
            await producing
            assert [frame.header for frame in received] == [b"%d" % n for n in range(500)]
            assert [len(frame.payload) for frame in received] == list(range(500))
            assert len(client._streams) == 0
            await eventually(lambda: len(server._streams) == 0)

    run(main())


def test_the_handler_sees_what_opened_the_stream(run: Runner) -> None:
    async def main() -> None:
        seen: list[Frame] = []

        async def handler(stream: Stream) -> None:
            seen.append(stream.opening)

        async with joined(Handlers(streams={5: handler})) as (client, _):
            stream = client.open_stream(5, b"about", (b"this",))
            assert await stream.receive() is None
            assert (seen[0].operation, seen[0].header, bytes(seen[0].payload)) == (
                5,
                b"about",
                b"this",
            )

    run(main())


def test_a_consumer_that_takes_nothing_stops_its_producer_and_nobody_else(run: Runner) -> None:
    async def main() -> None:
        sent = 0
        stopped = asyncio.Event()

        async def flood(stream: Stream) -> None:
            nonlocal sent
            while stream.send_nowait(b"", (bytes(1000),)):
                sent += 1
            stopped.set()
            while True:
                await stream.send(b"", (bytes(1000),))
                sent += 1

        handlers = Handlers(streams={1: flood, 2: echo})
        async with joined(handlers, limits=SMALL) as (client, server):
            slow = client.open_stream(1)
            await stopped.wait()
            # The window, and the one frame that may overdraw it.
            assert sent == 10
            other = client.open_stream(2)
            await other.send(b"ping")
            frame = await other.receive()
            assert frame is not None
            assert frame.header == b"ping"
            assert sent == 10
            assert not server.is_congested
            for _ in range(10):
                assert await slow.receive() is not None
            await eventually(lambda: sent >= 15)
            slow.cancel()

    run(main())


def test_one_frame_may_be_larger_than_the_window(run: Runner) -> None:
    async def main() -> None:
        async with joined(Handlers(streams={1: echo}), limits=SMALL) as (client, _):
            stream = client.open_stream(1)
            for _ in range(3):
                await stream.send(b"", (bytes(50_000),))
                frame = await stream.receive()
                assert frame is not None
                assert len(frame.payload) == 50_000

    run(main())


def test_empty_frames_cost_credit_too(run: Runner) -> None:
    async def main() -> None:
        async def deaf(stream: Stream) -> None:
            await asyncio.get_running_loop().create_future()

        async with joined(Handlers(streams={1: deaf}), limits=SMALL) as (client, _):
            stream = client.open_stream(1)
            count = 0
            while stream.send_nowait():
                count += 1
            assert count == 10_000 // 24 + 1

    run(main())


def test_a_side_that_ended_may_still_receive(run: Runner) -> None:
    async def main() -> None:
        async def answer_at_the_end(stream: Stream) -> None:
            total = 0
            async for frame in stream:
                total += len(frame.payload)
            await stream.send(b"%d" % total)

        async with joined(Handlers(streams={1: answer_at_the_end})) as (client, _):
            stream = client.open_stream(1)
            for _ in range(5):
                await stream.send(b"", (b"12345",))
            stream.end()
            with pytest.raises(StreamCancelled):
                await stream.send(b"after the end")
            frame = await stream.receive()
            assert frame is not None
            assert frame.header == b"25"
            assert await stream.receive() is None
            assert await stream.receive() is None

    run(main())


def test_an_error_in_the_handler_ends_the_stream_with_it(run: Runner) -> None:
    async def main() -> None:
        async def fails(stream: Stream) -> None:
            await stream.receive()
            raise NotLeader("moved", leader=2)

        async def breaks(stream: Stream) -> None:
            raise ZeroDivisionError

        async with joined(Handlers(streams={1: fails, 2: breaks})) as (client, _):
            stream = client.open_stream(1)
            await stream.send(b"x")
            with pytest.raises(NotLeader) as caught:
                await stream.receive()
            assert caught.value.leader == 2
            with pytest.raises(NotLeader):
                await stream.send(b"y")
            with pytest.raises(Exception, match="unexpected error"):
                await client.open_stream(2).receive()
            assert len(client._streams) == 0

    run(main())


def test_a_cancelled_stream_cancels_its_handler_and_wakes_who_waits(run: Runner) -> None:
    async def main() -> None:
        states: list[str] = []

        async def handler(stream: Stream) -> None:
            states.append("started")
            try:
                while True:
                    await stream.send(b"", (bytes(1000),))
            finally:
                states.append("ended")

        async with joined(Handlers(streams={1: handler}), limits=SMALL) as (client, server):
            stream = client.open_stream(1)
            await eventually(lambda: states)
            stream.cancel()
            await eventually(lambda: states == ["started", "ended"])
            with pytest.raises(StreamCancelled):
                await stream.receive()
            assert len(server._streams) == len(client._streams) == 0

    run(main())


def test_a_handler_may_refuse_its_own_stream_and_go_on(run: Runner) -> None:
    async def main() -> None:
        states: list[str] = []

        async def handler(stream: Stream) -> None:
            stream.cancel(NotLeader("not here", leader=9))
            await asyncio.sleep(0)
            states.append("went on")

        async with joined(Handlers(streams={1: handler})) as (client, _):
            with pytest.raises(NotLeader):
                await client.open_stream(1).receive()
            await eventually(lambda: states)

    run(main())


def test_a_producer_learns_that_its_consumer_has_left(run: Runner) -> None:
    async def main() -> None:
        async def takes_one(stream: Stream) -> None:
            await stream.receive()

        async with joined(Handlers(streams={1: takes_one}), limits=SMALL) as (client, _):
            stream = client.open_stream(1)

            async def flood() -> None:
                while True:
                    await stream.send(b"", (bytes(1000),))

            with pytest.raises(StreamCancelled):
                await flood()
            assert await stream.receive() is None

    run(main())


def test_a_waiting_sender_and_receiver_can_be_cancelled_without_harm(run: Runner) -> None:
    async def main() -> None:
        taking = asyncio.Event()

        async def handler(stream: Stream) -> None:
            await taking.wait()
            await echo(stream)

        async with joined(Handlers(streams={1: handler}), limits=SMALL) as (client, _):
            stream = client.open_stream(1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await stream.receive()
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while True:
                    await stream.send(b"%d" % sent, (bytes(1000),))
                    sent += 1

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(flood(), 0.05)
            taking.set()
            stream.end()
            received = [frame.header async for frame in stream]
            assert received == [b"%d" % number for number in range(sent)]

    run(main())


def test_unknown_operations_and_too_many_streams_are_refused(run: Runner) -> None:
    async def main() -> None:
        few = WireLimits(streams_max=2)
        async with joined(Handlers(streams={1: echo}), limits=few, client_limits=WireLimits()) as (
            client,
            _,
        ):
            with pytest.raises(UnsupportedOperation):
                await client.open_stream(9).receive()
            kept = [client.open_stream(1) for _ in range(2)]
            with pytest.raises(LimitExceeded, match="streams_max"):
                await client.open_stream(1).receive()
            assert len(kept) == len(client._streams)
        async with joined(Handlers(streams={1: echo}), limits=WireLimits(), client_limits=few) as (
            client,
            _,
        ):
            kept = [client.open_stream(1) for _ in range(2)]
            with pytest.raises(LimitExceeded, match="streams_max"):
                client.open_stream(1)

    run(main())


def test_a_peer_that_sends_without_credit_is_disconnected(run: Runner) -> None:
    async def main() -> None:
        async def deaf(stream: Stream) -> None:
            await asyncio.get_running_loop().create_future()

        async with joined(Handlers(streams={1: deaf}), limits=SMALL) as (client, server):
            stream = client.open_stream(1)
            for _ in range(20):
                client.put(FrameKind.STREAM_DATA, 0, stream.id, b"", (bytes(1000),))
            await server.wait_closed()
            assert isinstance(server.error, InvalidFrame)
            await client.wait_closed()
            with pytest.raises(ConnectionLost):
                await stream.receive()

    run(main())


def test_hostile_credit_never_makes_the_sender_unbounded(run: Runner) -> None:
    async def main() -> None:
        few = WireLimits(outgoing_bytes_max=100_000, write_buffer_bytes=10_000)
        streams: list[Stream] = []

        async def handler(stream: Stream) -> None:
            streams.append(stream)
            await asyncio.get_running_loop().create_future()

        async with joined(Handlers(streams={1: handler}), limits=few) as (client, server):
            stream = client.open_stream(1)
            for _ in range(5):
                client.put(FrameKind.STREAM_CREDIT, 0, stream.id, b"\xff" * 8, ())
            await eventually(lambda: streams and streams[0]._credit == 1 << 40)
            sent = 0
            while streams[0].send_nowait(b"", (bytes(10_000),)):
                sent += 1
            assert server.is_congested
            assert sent <= 11
            client.put(FrameKind.STREAM_CREDIT, 0, stream.id, b"short", ())
            await server.wait_closed()
            assert isinstance(server.error, InvalidFrame)

    run(main())
