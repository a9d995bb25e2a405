"""Floods on the wire: what waits for a client is bounded before login, quotas count every frame."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from typing import TYPE_CHECKING

from tests.component.wire.running import LOCALHOST, listening
from tests.floods.frames import FRAMES_IN_BLOCK, Cell, Proof, block, opening, wire_frame
from tests.on_a_loop import eventually

from angarium.wire import Handlers, WireLimits
from angarium.wire.decoder import FrameDecoder
from angarium.wire.flooding import Door
from angarium.wire.frames import FrameKind

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire import Request, Server

NOBODY = Proof("", "")
EARLY = Cell(Door.WIRE, "REQUEST", False)
PING = Cell(Door.WIRE, "PING", False)
LIMITS = WireLimits(control_frames_max=1 << 30)
KERNEL_BYTES = 16 << 10


class Toll:
    """Counts, and lets everything through."""

    def __init__(self) -> None:
        self.requests = 0

    def take_request(self) -> float:
        self.requests += 1
        return 0.0


class Tolled:
    def __init__(self) -> None:
        self.toll = Toll()


def answer(request: Request) -> None:
    request.answer(b"here")


async def greeted(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(LOCALHOST, server.port, limit=KERNEL_BYTES)
    writer.write(opening(PING, NOBODY)[0])
    assert await reader.read(1 << 16)
    return reader, writer


def test_refusals_that_a_client_does_not_read_are_bounded_before_login(run: Runner) -> None:
    async def main() -> None:
        unproven = Handlers(proofs=("bearer",))
        async with listening(unproven, limits=LIMITS) as server:
            reader, writer = await greeted(server)
            (connection,) = server.connections
            outgoing = connection._outgoing
            assert connection._transport is not None
            raw = connection._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            number = 0
            while not outgoing.is_full:
                writer.write(block(EARLY, number))
                number += 1
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await writer.drain()
            assert outgoing._queued + outgoing._handed <= LIMITS.write_buffer_bytes + (128 << 10)
            writer.transport.abort()
            await eventually(lambda: not server.connections)

    run(main())


def test_quotas_count_frames_that_ask_for_nothing(run: Runner) -> None:
    async def main() -> None:
        tolled = Tolled()
        async with listening(Handlers(requests={1: answer}, tolled=tolled)) as server:
            _, writer = await greeted(server)
            writer.write(wire_frame(FrameKind.PING, 0) * 200)
            await eventually(lambda: tolled.toll.requests == 200)
            writer.transport.abort()

    run(main())


def test_requests_sent_ahead_are_all_answered_in_order_and_nobody_is_cut(run: Runner) -> None:
    async def main() -> None:
        async with listening(Handlers(requests={1: answer})) as server:
            reader, writer = await greeted(server)
            count = 40 * FRAMES_IN_BLOCK
            sent = [wire_frame(FrameKind.REQUEST, 2 * one + 1, operation=1) for one in range(count)]
            decoder = FrameDecoder(frame_bytes_max=1 << 20, header_bytes_max=1 << 20)
            writing = asyncio.ensure_future(_write(writer, b"".join(sent)))
            heard: list[int] = []
            while len(heard) < count:
                frames = decoder.feed(await reader.read(1 << 16))
                heard += [one.id for one in frames if one.kind == FrameKind.ANSWER]
            assert heard == [2 * one + 1 for one in range(count)]
            await writing
            writer.transport.abort()

    run(main())


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


def test_one_turn_of_the_loop_handles_a_bounded_number_of_frames(run: Runner) -> None:
    async def main() -> None:
        served: list[int] = []
        handlers = Handlers(requests={1: lambda request: served.append(request.frame.id)})
        async with listening(handlers, limits=WireLimits(frames_per_turn=10)) as server:
            _, writer = await greeted(server)
            turns: list[int] = []
            loop = asyncio.get_running_loop()

            def look() -> None:
                turns.append(len(served))
                if len(served) < 100:
                    loop.call_soon(look)

            ids = [2 * one + 1 for one in range(100)]
            frames = [wire_frame(FrameKind.REQUEST, one, operation=1) for one in ids]
            writer.write(b"".join(frames))
            look()
            await eventually(lambda: len(served) == 100)
            assert served == ids
            steps = [later - sooner for sooner, later in itertools.pairwise(turns)]
            assert max(steps) <= 10
            writer.transport.abort()

    run(main())
