"""A gRPC server of a few methods, and clients in front of it: a channel, or frames by hand."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.unit.wire.http2.client_bytes import Frame, request, settings_of

from angarium.errors import InvalidArgument, LimitExceeded, TooLarge
from angarium.wire.grpc import CallLimits, CallRefused, GrpcCode, GrpcServer, Method
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import HeaderDecoder, literal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LOCALHOST = "127.0.0.1"
PATH = "/test.Service/Method"


def call_head(path: str = PATH, *more: tuple[bytes, bytes]) -> bytes:
    """Return the header block of a call."""
    block = b"\x83\x86" + literal(b":path", path.encode())
    fields = ((b"content-type", b"application/grpc"), (b"te", b"trailers"), *more)
    return block + b"".join(literal(*one) for one in fields)


class ByHand:
    """A client that says and does nothing by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = HeaderDecoder(block_bytes_max=1 << 20)

    def say(self, *frames: bytes) -> None:
        self._writer.write(b"".join(frames))

    def call(self, stream_id: int, *more: tuple[bytes, bytes], path: str = PATH) -> None:
        """Begin a call."""
        self.say(request(stream_id, call_head(path, *more)))

    async def frame(self, *kinds: int) -> Frame:
        """Return the next frame of one of these kinds; `EOFError` if none comes any more."""
        while True:
            try:
                head = await self._reader.readexactly(h2.HEAD_BYTES)
                length, flags, stream_id = h2.read_head(head)
                payload = await self._reader.readexactly(length >> 8)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                raise EOFError from error
            if length & 0xFF in kinds:
                return Frame(length & 0xFF, flags, stream_id, payload)

    async def trailers(self, stream_id: int) -> dict[bytes, bytes]:
        """Return what a call ended with."""
        while True:
            frame = await self.frame(h2.HEADERS)
            fields = dict(self._decoder.decoded(frame.payload))
            if frame.stream_id == stream_id and frame.flags & h2.END_STREAM:
                return fields

    async def is_closed(self) -> bool:
        """Read to the end, whatever comes before it."""
        with suppress(EOFError):
            while True:
                await self.frame()
        return True

    def close(self) -> None:
        self._writer.close()


@dataclass
class Serving:
    server: GrpcServer
    port: int
    channel: grpc.aio.Channel
    by_hand: list[ByHand]

    def unary(self, path: str = PATH) -> Any:
        return self.channel.unary_unary(path)

    def stream(self, path: str = PATH) -> Any:
        return self.channel.stream_stream(path)()

    async def dialled(self, *settings: tuple[int, int]) -> ByHand:
        """Return a client of its own that has said its settings."""
        client = ByHand(*await asyncio.open_connection(LOCALHOST, self.port))
        self.by_hand.append(client)
        client.say(h2.PREFACE + settings_of(*settings))
        return client

    async def round_trips(self, client: ByHand) -> None:
        """Return when the server has done what came before, and had time to do more."""
        for _ in range(5):
            client.say(h2.frame(h2.PING, 0, 0, bytes(8)))
            while not (await client.frame(h2.PING)).flags & h2.ACK:
                pass


async def refusal_of(error: Exception) -> CallRefused:
    if isinstance(error, CallRefused):
        return error
    code = GrpcCode.UNKNOWN
    if isinstance(error, InvalidArgument):
        code = GrpcCode.INVALID_ARGUMENT
    elif isinstance(error, LimitExceeded | TooLarge):
        code = GrpcCode.RESOURCE_EXHAUSTED
    return CallRefused(code, str(error))


@asynccontextmanager
async def serving(
    methods: dict[str, Method] | Method, limits: CallLimits | None = None
) -> AsyncIterator[Serving]:
    """Serve methods, or one at `PATH`."""
    if isinstance(methods, Method):
        methods = {PATH: methods}
    server = GrpcServer(methods, limits or CallLimits(), refusal_of=refusal_of)
    port = await server.start(host=LOCALHOST, port=0)
    by_hand: list[ByHand] = []
    try:
        async with grpc.aio.insecure_channel(f"{LOCALHOST}:{port}") as channel:
            yield Serving(server, port, channel, by_hand)
    finally:
        for client in by_hand:
            client.close()
        await server.stop(0)
