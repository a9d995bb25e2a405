"""A connection's life: handshake, backpressure, keep-alive, goodbye, hostile peers."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.gate import gated
from tests.component.wire.running import CLIENT, LOCALHOST, NODE, joined, listening
from tests.on_a_loop import eventually

from angarium.errors import LimitExceeded, PreconditionFailed
from angarium.ids import NodeId
from angarium.wire import (
    Connection,
    ConnectionLost,
    Frame,
    FrameTooLarge,
    Handlers,
    HandshakeRefused,
    Hello,
    InvalidFrame,
    Request,
    Role,
    Server,
    Stream,
    Unreachable,
    UnsupportedOperation,
    VersionMismatch,
    WireError,
    WireLimits,
    WrongCluster,
    WrongNode,
    dial,
)
from angarium.wire.decoder import FrameDecoder
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.frames import FrameKind, frame_head
from angarium.wire.handshake import MAGIC, completed

if TYPE_CHECKING:
    from tests.component.wire.running import Runner


def framed(kind: int, frame_id: int = 0, header: object = b"", operation: int = 0) -> bytes:
    return frame_head(
        kind,
        operation,
        frame_id,
        header,  # type: ignore[arg-type]
        (),
        frame_bytes_max=1 << 30,
        header_bytes_max=1 << 30,
    )[0]


GREETING = framed(FrameKind.HELLO, MAGIC, completed(CLIENT, WireLimits()))


class Stranger:
    """Speaks raw bytes to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, server: Server) -> Stranger:
        return cls(*await asyncio.open_connection(LOCALHOST, server.port))

    async def say(self, data: bytes) -> list[Frame]:
        """Send `data` and return every frame heard until the server hangs up."""
        self.writer.write(data)
        decoder = FrameDecoder(frame_bytes_max=1 << 26, header_bytes_max=1 << 20)
        frames = []
        try:
            async with asyncio.timeout(60):
                while piece := await self.reader.read(1 << 16):
                    frames += decoder.feed(piece)
        except ConnectionError:
            pass
        self.writer.close()
        return frames


# --- handshake --------------------------------------------------------------------------------


def test_both_sides_know_each_other_after_the_handshake(run: Runner) -> None:
    async def main() -> None:
        async with listening() as server:
            me = Hello(role=Role.PEER, cluster="c1", node=2, incarnation=77, features={"m": 1})
            client = await dial(host=LOCALHOST, port=server.port, hello=me)
            (accepted,) = server.connections
            assert (client.peer.hello.node, client.peer.version) == (1, 1)
            assert accepted.peer.hello.node == 2
            assert accepted.peer.hello.incarnation == 77
            assert accepted.peer.hello.role is Role.PEER
            await client.close()

    run(main())


@pytest.mark.parametrize(
    ("hello", "refusal"),
    [
        (Hello(role=Role.PEER, cluster="another"), WrongCluster),
        (Hello(role=Role.PEER, version_min=7, version_max=9), VersionMismatch),
    ],
)
def test_who_does_not_fit_is_told_why(
    run: Runner, hello: Hello, refusal: type[HandshakeRefused]
) -> None:
    async def main() -> None:
        async with listening() as server:
            with pytest.raises(refusal):
                await dial(host=LOCALHOST, port=server.port, hello=hello)
            await eventually(lambda: not server.connections)

    run(main())


def test_another_node_than_expected_is_refused_by_the_dialling_side(run: Runner) -> None:
    async def main() -> None:
        async with listening() as server:
            with pytest.raises(WrongNode):
                await dial(host=LOCALHOST, port=server.port, hello=CLIENT, expected_node=NodeId(9))
            await eventually(lambda: not server.connections)

    run(main())


def test_a_server_may_refuse_a_newcomer_for_reasons_of_its_own(run: Runner) -> None:
    def welcome(connection: Connection) -> Handlers:
        assert connection.peer.hello.role is Role.CLIENT
        raise PreconditionFailed("this node serves no clients")

    async def main() -> None:
        server = await Server.listen(host=LOCALHOST, port=0, greeting=lambda: NODE, welcome=welcome)
        with pytest.raises(PreconditionFailed, match="no clients"):
            await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
        await server.drain()

    run(main())


def test_nobody_at_the_address_is_definitely_unreachable(run: Runner) -> None:
    async def main() -> None:
        with socket.socket() as unused:
            unused.bind((LOCALHOST, 0))
            port = unused.getsockname()[1]
            with pytest.raises(Unreachable):
                await dial(host=LOCALHOST, port=port, hello=CLIENT)

    run(main())


def test_a_listener_that_never_greets_is_unreachable_in_time(run: Runner) -> None:
    async def main() -> None:
        with socket.socket() as mute:
            mute.bind((LOCALHOST, 0))
            mute.listen()
            with pytest.raises(Unreachable, match="did not answer within"):
                await dial(host=LOCALHOST, port=mute.getsockname()[1], hello=CLIENT, timeout_s=0.05)

    run(main())


def test_a_stranger_who_never_greets_is_let_go(run: Runner) -> None:
    async def main() -> None:
        async with listening(limits=WireLimits(handshake_timeout_s=0.05)) as server:
            stranger = await Stranger.connect(server)
            (goodbye,) = await stranger.say(b"")
            assert goodbye.kind == FrameKind.GOODBYE
            assert isinstance(error_of(goodbye.read(Failure)), HandshakeRefused)

    run(main())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", FrameTooLarge),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), FrameTooLarge),
        (bytes(64), InvalidFrame),
        (framed(FrameKind.PING), HandshakeRefused),
        (framed(FrameKind.HELLO, 5, completed(CLIENT, WireLimits())), HandshakeRefused),
        (framed(FrameKind.HELLO, MAGIC, b"\xc1"), HandshakeRefused),
        (framed(FrameKind.GOODBYE, 0, Failure("", "bye")), HandshakeRefused),
        (framed(FrameKind.HELLO, MAGIC, bytes(70_000)), FrameTooLarge),
        (GREETING + GREETING, InvalidFrame),
        (GREETING + framed(200), InvalidFrame),
        (GREETING + framed(FrameKind.MESSAGE, operation=99), UnsupportedOperation),
        (GREETING + framed(FrameKind.REQUEST, 2, operation=1), InvalidFrame),
        (GREETING + framed(FrameKind.STREAM_OPEN, 4, operation=1), InvalidFrame),
        (GREETING + framed(FrameKind.FAILURE, 4, b"\xc1"), Exception),
        (GREETING + bytes(24), InvalidFrame),
    ],
)
def test_hostile_words_get_a_typed_goodbye_and_leave_nothing_behind(
    run: Runner, words: bytes, error: type[Exception]
) -> None:
    async def main() -> None:
        async with listening(Handlers(requests={1: lambda _: None})) as server:
            stranger = await Stranger.connect(server)
            heard = await stranger.say(words)
            assert heard[-1].kind == FrameKind.GOODBYE
            assert isinstance(error_of(heard[-1].read(Failure)), error)
            await eventually(lambda: not server.connections)

    run(main())


def test_answers_to_nobody_and_frames_of_ended_streams_are_ignored(run: Runner) -> None:
    async def main() -> None:
        def echo(request: Request) -> None:
            request.answer(request.frame.header)

        async with joined(Handlers(requests={1: echo})) as (client, server):
            for kind in (
                FrameKind.ANSWER,
                FrameKind.CANCEL,
                FrameKind.STREAM_DATA,
                FrameKind.STREAM_CREDIT,
                FrameKind.STREAM_END,
                FrameKind.PONG,
            ):
                client.put(kind, 0, 12345, b"", ())
            client.put(FrameKind.FAILURE, 0, 12345, Failure("NOT_FOUND"), ())
            assert (await client.request(1, b"ok", timeout_s=30)).header == b"ok"
            assert server.is_open

    run(main())


# --- one-way messages and backpressure ----------------------------------------------------------


def test_messages_arrive_in_order(run: Runner) -> None:
    async def main() -> None:
        heard: list[bytes] = []

        def take(_: Connection, frame: Frame) -> None:
            heard.append(frame.header + bytes(frame.payload))

        async with joined(Handlers(messages={1: take})) as (client, _):
            for number in range(2000):
                assert client.send(1, b"%d:" % number, (b"x" * (number % 50),))
            await eventually(lambda: len(heard) == 2000)
            assert heard == [b"%d:" % n + b"x" * (n % 50) for n in range(2000)]

    run(main())


def test_a_message_that_breaks_its_handler_is_logged_and_harms_nobody(
    run: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        heard: list[bytes] = []

        def take(_: Connection, frame: Frame) -> None:
            if frame.header == b"bad":
                raise ZeroDivisionError
            if frame.header == b"worse":
                raise InvalidFrame("no such thing")
            heard.append(frame.header)

        async with joined(Handlers(messages={1: take})) as (client, server):
            client.send(1, b"bad")
            client.send(1, b"good")
            await eventually(lambda: heard == [b"good"])
            client.send(1, b"worse")
            await server.wait_closed()
            await client.wait_closed()
            assert isinstance(client.error, InvalidFrame)

    with caplog.at_level(logging.ERROR):
        run(main())
    assert "ZeroDivisionError" in caplog.text


def test_messages_to_a_peer_that_does_not_read_are_dropped_and_counted(run: Runner) -> None:
    async def main() -> None:
        few = WireLimits(outgoing_bytes_max=1_000_000, write_buffer_bytes=64_000)
        heard = 0

        def take(_: Connection, frame: Frame) -> None:
            nonlocal heard
            heard += 1

        async with gated(Handlers(messages={1: take}), limits=WireLimits(), client_limits=few) as (
            client,
            _,
            gate,
        ):
            gate.shut()
            sent = 0
            body = bytes(100_000)
            async with asyncio.timeout(60):
                while client.messages_dropped < 5:
                    sent += client.send(1, b"", (body,))
                    await asyncio.sleep(0)
            assert client.is_congested
            waiting = asyncio.ensure_future(client.room())
            await asyncio.sleep(0)
            assert not waiting.done()
            with pytest.raises(Unreachable, match="did not take"):
                await client.request(1, timeout_s=0.01)
            gate.open()
            await waiting
            await eventually(lambda: heard == sent)
            assert not client.is_congested

    run(main())


def test_a_client_that_asks_and_never_reads_cannot_fill_the_servers_memory(run: Runner) -> None:
    async def main() -> None:
        few = WireLimits(outgoing_bytes_max=500_000, write_buffer_bytes=64_000)
        served = 0

        def give(request: Request) -> None:
            nonlocal served
            served += 1
            request.answer(b"", (bytes(100_000),))

        async with gated(Handlers(requests={1: give}), limits=few, client_limits=WireLimits()) as (
            client,
            server,
            gate,
        ):
            gate.shut("to the client")
            asking = [asyncio.ensure_future(client.request(1, timeout_s=60)) for _ in range(1000)]
            # It looks at no more requests once its answers pile up: some are in its own buffer,
            # some in the kernel's and the gate's, and most have not been looked at.
            await eventually(lambda: server.is_congested)
            for _ in range(100):
                await asyncio.sleep(0)
            assert 0 < served < 500
            gate.open()
            answers = await asyncio.gather(*asking)
            assert len(answers) == served == 1000
            await eventually(lambda: not server.is_congested)

    run(main())


# --- keep-alive ---------------------------------------------------------------------------------

IMPATIENT = WireLimits(ping_interval_s=0.03, silent_intervals_max=3)


def test_two_idle_sides_keep_their_connection(run: Runner) -> None:
    async def main() -> None:
        async with joined(limits=IMPATIENT) as (client, server):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.4):
                    await client.wait_closed()
            assert client.is_open
            assert server.is_open

    run(main())


def test_a_silent_peer_is_given_up(run: Runner) -> None:
    async def main() -> None:
        async with listening(limits=IMPATIENT) as server:
            stranger = await Stranger.connect(server)
            stranger.writer.write(GREETING)
            await eventually(lambda: [c for c in server.connections if c.is_open])
            (accepted,) = server.connections
            await accepted.wait_closed()
            assert isinstance(accepted.error, ConnectionLost)
            assert "silent" in str(accepted.error)
            stranger.writer.close()

    run(main())


def test_a_peer_that_takes_none_of_its_bytes_is_given_up(run: Runner) -> None:
    async def main() -> None:
        patient = WireLimits(ping_interval_s=0.05)
        async with gated(
            Handlers(messages={1: lambda *_: None}), limits=WireLimits(), client_limits=patient
        ) as (client, _, gate):
            gate.shut()
            while not client.is_congested:
                client.send(1, b"", (bytes(1_000_000),))
                await asyncio.sleep(0)
            async with asyncio.timeout(60):
                await client.wait_closed()
            assert "none of our bytes" in str(client.error) or "silent" in str(client.error)

    run(main())


# --- goodbye ------------------------------------------------------------------------------------


def test_closing_lets_requests_under_way_finish(run: Runner) -> None:
    async def main() -> None:
        asked, release = asyncio.Event(), asyncio.Event()

        async def slow(request: Request) -> None:
            asked.set()
            await release.wait()
            request.answer(b"done")

        async with listening(Handlers(requests={1: slow})) as server:
            client = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            port = server.port
            asking = asyncio.ensure_future(client.request(1, timeout_s=30))
            await asked.wait()
            draining = asyncio.ensure_future(server.drain())
            await eventually(lambda: not client.is_open)
            with pytest.raises(Unreachable):
                await client.request(1, timeout_s=30)
            release.set()
            assert (await asking).header == b"done"
            await draining
            await client.wait_closed()
            assert client.error is None
            with pytest.raises(Unreachable):
                await dial(host=LOCALHOST, port=port, hello=CLIENT)

    run(main())


def test_closing_does_not_wait_longer_than_allowed(run: Runner) -> None:
    async def main() -> None:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def never(request: Request) -> None:
            asked.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.set()

        async with joined(Handlers(requests={1: never})) as (client, server):
            asking = asyncio.ensure_future(client.request(1, timeout_s=30))
            await asked.wait()
            await server.close("enough", timeout_s=0.05)
            with pytest.raises(ConnectionLost):
                await asking
            assert ended.is_set()

    run(main())


def test_closing_ends_streams_and_their_tasks(run: Runner) -> None:
    async def main() -> None:
        begun = asyncio.Event()
        ended: list[bool] = []

        async def endless(stream: Stream) -> None:
            begun.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(True)

        async with joined(Handlers(streams={1: endless})) as (client, server):
            stream = client.open_stream(1)
            await begun.wait()
            await server.close("maintenance")
            with pytest.raises(ConnectionLost, match="maintenance"):
                await stream.receive()
            assert ended == [True]

    run(main())


def test_both_sides_hear_once_that_the_connection_is_gone(run: Runner) -> None:
    async def main() -> None:
        gone: list[tuple[str, object]] = []

        def hear(name: str) -> Handlers:
            return Handlers(on_closed=lambda _, error: gone.append((name, error)))

        async with joined(hear("server"), client_serves=hear("client")) as (client, server):
            await client.close()
            await server.wait_closed()
        assert sorted(gone, key=lambda item: item[0]) == [("client", None), ("server", None)]

    run(main())


def test_failing_tells_the_other_side_why(run: Runner) -> None:
    async def main() -> None:
        async with joined() as (client, server):
            server.fail(WireError("enough of this"))
            await client.wait_closed()
            assert type(client.error) is WireError
            assert str(client.error) == "enough of this"

    run(main())


def test_closing_twice_or_after_the_end_is_fine(run: Runner) -> None:
    async def main() -> None:
        async with joined() as (client, server):
            await asyncio.gather(client.close(), client.close(), server.close())
            await client.close()
            client.fail(WireError("too late"))
            assert client.error is None

    run(main())


# --- server -------------------------------------------------------------------------------------


def test_connections_beyond_the_limit_are_told_so(run: Runner) -> None:
    async def main() -> None:
        async with listening(limits=WireLimits(connections_max=2)) as server:
            kept = [await dial(host=LOCALHOST, port=server.port, hello=CLIENT) for _ in range(2)]
            with pytest.raises(LimitExceeded, match="connections_max"):
                await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            assert server.refused == 1
            await kept[0].close()
            await eventually(lambda: len(server.connections) == 1)
            again = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            await again.close()
            await kept[1].close()

    run(main())


def test_a_crowd_is_cut_without_a_word(run: Runner) -> None:
    async def main() -> None:
        async with listening(limits=WireLimits(connections_max=1)) as server:
            # As if nobody could be sent away: those are, and have not gone yet.
            known = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            server._newcomers.clear()
            stranger = await Stranger.connect(server)
            await eventually(lambda: len(server.connections) == 2)
            server._newcomers.clear()
            assert await (await Stranger.connect(server)).say(b"") == []
            assert server.refused == 1
            stranger.writer.close()
            known.abort()

    run(main())


def test_a_node_may_learn_its_cluster_while_it_listens(run: Runner) -> None:
    async def main() -> None:
        cluster = ""
        server = await Server.listen(
            host=LOCALHOST,
            port=0,
            greeting=lambda: Hello(role=Role.PEER, cluster=cluster, node=1),
            welcome=lambda _: Handlers(),
        )
        member = Hello(role=Role.PEER, cluster="c7", node=2)
        await (await dial(host=LOCALHOST, port=server.port, hello=member)).close()
        cluster = "c8"
        with pytest.raises(WrongCluster):
            await dial(host=LOCALHOST, port=server.port, hello=member)
        await server.drain()

    run(main())


def test_a_port_of_another_protocol_is_named(run: Runner) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async def main() -> None:
        stranger = await asyncio.start_server(answer, LOCALHOST, 0)
        port = stranger.sockets[0].getsockname()[1]
        with pytest.raises(HandshakeRefused, match=f":{port} does not speak the wire protocol"):
            await dial(host=LOCALHOST, port=port, hello=CLIENT)
        stranger.close()

    run(main())
