"""The test service on grpcio's own server: what the judges are tried on.

python -m tests.doors.interop.on_grpcio [--port PORT] [--tls]
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
import grpc.aio
from tests.doors.interop.service import SERVICE, STREAMING, UNARY
from tests.doors.interop.serving import MESSAGE_BYTES_MAX, self_signed, serving_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from tests.doors.interop.service import Call

CODES = {code.value[0]: code for code in grpc.StatusCode}
GZIP = b"\x1f\x8b"


class GrpcioCall:
    """A call of grpcio in the shape that the service takes."""

    def __init__(self, context: Any) -> None:
        self.compressed = False
        self._context = context
        context.set_compression(grpc.Compression.Gzip)
        self._wanted = False

    def inflated(self, data: bytes) -> bytes:
        """Return a request as it was before; the server is told to leave them compressed."""
        self.compressed = data.startswith(GZIP)
        return zlib.decompress(data, 16 + zlib.MAX_WBITS) if self.compressed else data

    def compress(self, *, wanted: bool) -> None:
        self._wanted = wanted

    def plain_if_so(self) -> None:
        """Have the next answer go out as the service wants it."""
        if not self._wanted:
            self._context.disable_next_message_compression()

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]]:
        return tuple(self._context.invocation_metadata())

    async def send_initial_metadata(self, pairs: Sequence[tuple[str, str | bytes]]) -> None:
        await self._context.send_initial_metadata(tuple(pairs))

    def set_trailing_metadata(self, pairs: Sequence[tuple[str, str | bytes]]) -> None:
        self._context.set_trailing_metadata(tuple(pairs))

    async def write(self, data: bytes) -> None:
        self.plain_if_so()
        await self._context.write(data)

    async def abort(self, code: int, details: str) -> NoReturn:
        await self._context.abort(CODES[code], details, self._context.trailing_metadata())
        raise AssertionError("abort raises")


def handlers() -> dict[str, Any]:
    """Return all handlers as grpcio takes them."""

    def unary(handler: Callable[[bytes, Call], Awaitable[bytes]]) -> Any:
        async def serve(data: bytes, context: Any) -> bytes:
            call = GrpcioCall(context)
            answer = await handler(call.inflated(data), call)
            call.plain_if_so()
            return answer

        return grpc.unary_unary_rpc_method_handler(serve)

    def streaming(handler: Callable[[AsyncIterator[bytes], Call], Awaitable[None]]) -> Any:
        async def serve(requests: AsyncIterator[bytes], context: Any) -> None:
            call = GrpcioCall(context)
            await handler((call.inflated(data) async for data in requests), call)

        return grpc.stream_stream_rpc_method_handler(serve)

    return {name: unary(one) for name, one in UNARY.items()} | {
        name: streaming(one) for name, one in STREAMING.items()
    }


async def start(port: int = 0, *, tls: bool = False) -> tuple[grpc.aio.Server, int]:
    """Serve on this machine; return the server and its port."""
    server = grpc.aio.server(
        options=[
            ("grpc.per_message_decompression", 0),
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ]
    )
    mounted = grpc.method_handlers_generic_handler(SERVICE, handlers())
    server.add_generic_rpc_handlers((mounted,))
    address = f"127.0.0.1:{port}"
    if tls:
        key, certificate = self_signed()
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    await server.start()
    return server, port


async def _main(*, port: int, tls: bool) -> None:
    server, port = await start(port, tls=tls)
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_main(**serving_options()))
