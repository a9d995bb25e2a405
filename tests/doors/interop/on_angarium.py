"""gRPC's test service on the server that our doors are made of.

python -m tests.doors.interop.on_angarium [--port PORT] [--tls]
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import uvloop
from tests.doors.interop.service import SERVICE, STREAMING, UNARY
from tests.doors.interop.serving import MESSAGE_BYTES_MAX, self_signed, serving_options

from angarium.security.tls import CertificateFiles, ClientCertificates, Door
from angarium.security.tls.contexts import listener_context
from angarium.wire.grpc import (
    CallLimits,
    CallRefused,
    GrpcCode,
    GrpcServer,
    messages,
    streaming,
    unary,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from tests.doors.interop.service import Call

    from angarium.wire.grpc import Call as OurCall
    from angarium.wire.grpc import Method, Requests


GRACE_SECONDS = 5.0


class Inflated(bytes):
    """A request that had come compressed: no handler of ours has to know, so no call tells."""


_inflated = messages.inflated


def _marked(data: bytes, bytes_max: int) -> bytes:
    return Inflated(_inflated(data, bytes_max))


class MountedCall:
    """A call of ours in the shape that the service takes."""

    def __init__(self, call: OurCall) -> None:
        self.compressed = False
        self.compresses = False
        self._call = call
        self._trailing: Sequence[tuple[str, str | bytes]] = ()
        call.may_compress()

    def seen(self, data: bytes) -> bytes:
        """Remember how a request came."""
        self.compressed = isinstance(data, Inflated)
        return data

    def compress(self, *, wanted: bool) -> None:
        self.compresses = wanted

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]]:
        return self._call.invocation_metadata()

    async def send_initial_metadata(self, pairs: Sequence[tuple[str, str | bytes]]) -> None:
        await self._call.send_initial_metadata(pairs)

    def set_trailing_metadata(self, pairs: Sequence[tuple[str, str | bytes]]) -> None:
        self._trailing = pairs
        self._call.set_trailing_metadata(pairs)

    async def write(self, data: bytes) -> None:
        await self._call.write(data, compressed=self.compresses)

    async def abort(self, code: int, details: str) -> NoReturn:
        await self._call.abort(GrpcCode(code), details, self._trailing)


def methods() -> dict[str, Method]:
    """Return all handlers as our server takes them."""

    def one(handler: Callable[[bytes, Call], Awaitable[bytes]]) -> Method:
        async def serve(data: bytes, call: OurCall) -> Any:
            mounted = MountedCall(call)
            answer = await handler(mounted.seen(data), mounted)
            if not mounted.compresses:
                return answer
            await mounted.write(answer)
            return None

        return unary(serve)

    def many(handler: Callable[[AsyncIterator[bytes], Call], Awaitable[None]]) -> Method:
        async def serve(requests: Requests, call: OurCall) -> None:
            mounted = MountedCall(call)
            await handler((mounted.seen(data) async for data in requests), mounted)

        return streaming(serve)

    mounted = {name: one(handler) for name, handler in UNARY.items()} | {
        name: many(handler) for name, handler in STREAMING.items()
    }
    return {f"/{SERVICE}/{name}": method for name, method in mounted.items()}


async def start(port: int = 0, *, tls: bool = False) -> tuple[GrpcServer, int]:
    """Serve on this machine; return the server and its port."""
    messages.inflated = _marked
    limits = CallLimits(message_bytes_max=MESSAGE_BYTES_MAX)
    server = GrpcServer(methods(), limits, refusal_of=_refusal_of)
    shown = None
    if tls:
        shown = _context
    return server, await server.start(host="127.0.0.1", port=port, tls=shown)


@cache
def _context() -> ssl.SSLContext:
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        for path, content in zip((key, certificate), self_signed(), strict=True):
            path.write_bytes(content)
        files = CertificateFiles(certificate=certificate, key=key)
        return listener_context(files, clients=ClientCertificates.NONE, door=Door.GRPC)


async def _refusal_of(error: Exception) -> CallRefused:
    if isinstance(error, CallRefused):
        return error
    return CallRefused(GrpcCode.INTERNAL, repr(error))


async def _main(*, port: int, tls: bool) -> None:
    """Serve until told to end; what is under way then has some seconds."""
    server, port = await start(port, tls=tls)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    print(f"127.0.0.1:{port}", flush=True)
    await told.wait()
    await server.stop(GRACE_SECONDS)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(**serving_options()))
