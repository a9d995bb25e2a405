"""One gRPC listener of a profile: its service under its own name, with reflection.

Handlers are found by the names of the schema's calls. They get parsed requests (streams of them get
bytes, for speed), return messages or raise; an error becomes the status of the one table and its
sentence, which is all that clients of these brokers know how to read.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from angarium.doors.grpc.reflection import Reflection
from angarium.doors.grpc.refusals import expected
from angarium.doors.status import INTERNAL, status_of
from angarium.errors import AngariumError
from angarium.security.origin import ORIGIN, Origin
from angarium.wire import Unreachable
from angarium.wire.error_codec import failure_of
from angarium.wire.grpc import CallEnded, CallLimits, CallRefused, GrpcServer, streaming, unary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from angarium.wire.grpc import Call, GrpcCode, Method
    from angarium.wire.listening import Context
    from angarium_compat.schemas import Schema

MESSAGE_CHARACTERS_MAX: Final = 1_024
"""A longer sentence is cut: it travels in a header."""


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
        begins: Mapping[str, Callable[..., Coroutine[Any, Any, None] | None]] | None = None,
        admit: Callable[[Call], Awaitable[None]] | None = None,
        on_ended: Callable[[str, bool, float], None] | None = None,
        limits: CallLimits | None = None,
        tls: Context | None = None,
        traced_as: str = "",
    ) -> None:
        """Prepare; `admit` raises for callers who may not, `on_ended` is told how each call went:
        its name, whether it succeeded, and its seconds. `traced_as` is what the listener is called
        for those who ask where a call came from; empty: nobody does.

        Calls of `begins` are not awaited but begun, and answered on the call later, so that one
        costs no task: for those without `admit` and `on_ended`.
        """
        begins = begins or {}
        assert {*handlers, *begins} == schema.methods.keys(), "every call has a handler"
        self._schema = schema
        self._admit = admit
        self._traced_as = traced_as
        self._on_ended = on_ended
        methods = {name: self._method(name, one) for name, one in handlers.items()}
        methods |= {name: self._begun(name, one) for name, one in begins.items()}
        self._server = GrpcServer(
            {
                **{f"/{schema.service}/{name}": one for name, one in methods.items()},
                **Reflection((schema.service,), schema.pool).methods(),
            },
            limits or CallLimits(),
            refusal_of=_refusal_of,
            asks_who=admit is not None,
        )
        self._address = (host, port)
        self._tls = tls
        self.closings = self._server.closings

    async def start(self) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        host, port = self._address
        return await self._server.start(host=host, port=port, tls=self._tls)

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

    def _trace(self, call: Call) -> None:
        if self._traced_as:
            ORIGIN.set(Origin(self._traced_as, call.source))

    def _begun(self, name: str, begin: Callable[..., Coroutine[Any, Any, None] | None]) -> Method:
        assert self._admit is None
        assert self._on_ended is None
        parsed = self._schema[self._schema.methods[name].request].FromString

        is_traced = bool(self._traced_as)

        def start(data: bytes, call: Call) -> None:
            if is_traced:
                self._trace(call)
            work = begin(parsed(data), call)
            if work is not None:
                call.attend(work)

        return unary(start)

    def _method(self, name: str, handler: Callable[..., Awaitable[Any]]) -> Method:
        method = self._schema.methods[name]
        parsed = self._schema[method.request].FromString

        async def answer(request: Any, call: Call) -> Any:
            began = time.perf_counter()
            succeeded = False
            answer: Any = None
            self._trace(call)
            try:
                if self._admit is not None:
                    await self._admit(call)
                    call.proven()
                if not method.client_streams:
                    request = parsed(request)
                answer = await handler(request, call)
                succeeded = True
            except asyncio.CancelledError:
                # A stream that its client leaves has done what it was there for.
                succeeded = method.server_streams
                raise
            except CallEnded:
                # A write to a stream that its client has left: there is nobody to tell.
                succeeded = method.server_streams
                raise
            finally:
                if self._on_ended is not None:
                    self._on_ended(name, succeeded, time.perf_counter() - began)
            return None if answer is None else answer.SerializeToString()

        return streaming(answer) if method.client_streams else unary(answer)


async def _refusal_of(error: Exception) -> CallRefused:
    known = expected(error)
    if isinstance(known, CallRefused):
        return known
    if isinstance(known, Refused):
        code, sentence = known.code, str(known)
    else:
        status = status_of(known) if isinstance(known, AngariumError) else INTERNAL
        code, sentence = status.grpc, failure_of(known).message
    return CallRefused(code, sentence[:MESSAGE_CHARACTERS_MAX])
