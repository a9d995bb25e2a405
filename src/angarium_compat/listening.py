"""One gRPC listener of a profile: its service under its own name, with reflection.

Handlers are found by the names of the schema's calls. They get parsed requests (streams of them get
bytes, for speed), return messages or raise; an error becomes the status of the one table and its
sentence, which is all that clients of these brokers know how to read.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import grpc
import grpc.aio

from angarium.doors.grpc.inflating import inflated
from angarium.doors.grpc.refusals import expected, without_frames
from angarium.doors.grpc.server_limits import GrpcLimits
from angarium.doors.grpc.serving import GrpcServer
from angarium.doors.status import INTERNAL, GrpcCode, status_of
from angarium.errors import AngariumError
from angarium.wire import Unreachable
from angarium.wire.error_codec import failure_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from angarium_compat.schemas import Schema

Context = Any
"""A grpc.aio context; messages are of classes that exist at run time only."""

MESSAGE_CHARACTERS_MAX: Final = 1_024
"""A longer sentence is cut: it travels in a header."""

_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


class Refused(Exception):
    """An error that the profile calls otherwise than the table: its own code, and a sentence."""

    def __init__(self, code: GrpcCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Listener:
    """Serves one profile on one address."""

    def __init__(
        self,
        schema: Schema,
        handlers: Mapping[str, Callable[..., Awaitable[Any]]],
        *,
        host: str,
        port: int,
        admit: Callable[[Context], Awaitable[None]] | None = None,
        on_ended: Callable[[str, bool, float], None] | None = None,
        limits: GrpcLimits | None = None,
    ) -> None:
        """Prepare; `admit` raises for callers who may not, `on_ended` is told how each call went:
        its name, whether it succeeded, and its seconds."""
        assert handlers.keys() == schema.methods.keys(), "every call of the schema has a handler"
        self._schema = schema
        self._handlers = handlers
        self._admit = admit
        self._on_ended = on_ended
        self._limits = limits or GrpcLimits()
        self._server = GrpcServer(host=host, port=port, limits=self._limits)
        self.closings = self._server.closings

    async def start(self) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        schema = self._schema
        served = {name: self._handler(name) for name in schema.methods}
        inflating = self._server.prepare(schema.service, served)
        return await self._server.start(inflating, schema.service, pool=schema.pool)

    async def stop(self, grace_s: float) -> None:
        """Close: streams end at once, other calls have `grace_s` to finish."""
        await self._server.stop(grace_s)

    async def until_one_ends(self, *works: Coroutine[Any, Any, None]) -> None:
        """Run parts of a stream until one of them ends or the listener closes.

        The others are cancelled. Raises what the first one raised, and `Unreachable` when the
        listener closes: a client may then go to another node.
        """
        tasks = [asyncio.ensure_future(one) for one in works]
        closing = asyncio.ensure_future(self._server.stopping.wait())
        try:
            done, _ = await asyncio.wait((*tasks, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*tasks, closing):
                task.cancel()
            await asyncio.wait((*tasks, closing))
        for task in done:
            failure = task.exception()
            if failure is not None:
                raise failure
        if closing in done:
            raise Unreachable("this node is closing")

    # --- calls ----------------------------------------------------------------------------------

    def _handler(self, name: str) -> grpc.RpcMethodHandler[Any, Any]:
        method = self._schema.methods[name]
        handler = self._handlers[name]
        parsed = self._schema[method.request].FromString
        bytes_max = self._limits.message_bytes_max

        async def call(request: Any, context: Context) -> Any:
            began = time.perf_counter()
            succeeded = False
            answer: Any = None
            try:
                if self._admit is not None:
                    await self._admit(context)
                if not method.client_streams:
                    request = parsed(inflated(request, bytes_max))
                answer = await handler(request, context)
                succeeded = True
            except asyncio.CancelledError:
                # A stream that its client leaves has done what it was there for.
                succeeded = method.server_streams
                raise
            except grpc.aio.BaseError:
                # A write to a stream that its client has left: there is nobody to tell.
                succeeded = method.server_streams
                if not succeeded:
                    raise
            except Exception as error:  # each becomes an answer
                request = None  # see `without_frames`
                await _refuse(context, error)
            finally:
                if self._on_ended is not None:
                    self._on_ended(name, succeeded, time.perf_counter() - began)
            return None if answer is None else answer.SerializeToString()

        inflating = partial(inflated, bytes_max=bytes_max)
        match method.client_streams, method.server_streams:
            case False, False:
                return grpc.unary_unary_rpc_method_handler(call)
            case True, False:
                return grpc.stream_unary_rpc_method_handler(call, request_deserializer=inflating)
            case False, True:
                return grpc.unary_stream_rpc_method_handler(call)
            case _:
                return grpc.stream_stream_rpc_method_handler(call, request_deserializer=inflating)


async def _refuse(context: Context, error: Exception) -> NoReturn:
    known = expected(error)
    if isinstance(known, Refused):
        code, sentence = known.code, str(known)
    else:
        status = status_of(known) if isinstance(known, AngariumError) else INTERNAL
        code, sentence = status.grpc, failure_of(known).message
    without_frames(error)
    await context.abort(_CODES[code], sentence[:MESSAGE_CHARACTERS_MAX])
    raise AssertionError("abort raises")
