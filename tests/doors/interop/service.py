"""What gRPC's test clients expect of a server, as functions over bytes.

Nothing here knows which server carries it: a server is mounted by giving its calls the shape of
`Call`. Handlers of one request are `async (bytes, call) -> bytes`; all others, whichever side
streams, are `async (requests, call) -> None` and write by themselves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from tests.doors.interop.messages import messages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

SERVICE: Final = "grpc.testing.TestService"

INVALID_ARGUMENT: Final = 3

SERVER_ID: Final = "angarium"
"""By which a client sees that all its calls came to one server."""

ECHO_FIRST: Final = "x-grpc-test-echo-initial"
"""A header that comes back at the beginning of an answer."""
ECHO_LAST: Final = "x-grpc-test-echo-trailing-bin"
"""A header that comes back at the end."""


class Call(Protocol):
    """A call under way."""

    @property
    def compressed(self) -> bool:
        """Whether the request that was given out last had come compressed."""

    def compress(self, *, wanted: bool) -> None:
        """Say whether the answers that follow go out compressed."""

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]]:
        """Return the headers of the call."""

    async def send_initial_metadata(self, pairs: Sequence[tuple[str, str | bytes]]) -> None:
        """Send headers ahead of the first answer."""

    def set_trailing_metadata(self, pairs: Sequence[tuple[str, str | bytes]]) -> None:
        """Send these behind the last answer."""

    async def write(self, data: bytes) -> None:
        """Send an answer."""

    async def abort(self, code: int, details: str) -> NoReturn:
        """End the call with a status."""


async def empty_call(data: bytes, call: Call) -> bytes:
    """Nothing for nothing."""
    _parsed("Empty", data)
    await _echo(call)
    return b""


async def unary_call(data: bytes, call: Call) -> bytes:
    """As many bytes as were asked for, or a status."""
    request = _parsed("SimpleRequest", data)
    await _as_expected(request, call)
    call.compress(wanted=request.response_compressed.value)
    await _echo(call)
    await _as_told(request, call)
    who = {"server_id": SERVER_ID} if request.fill_server_id else {}
    return _answer("SimpleResponse", request.response_size, **who)


async def streaming_output_call(requests: AsyncIterator[bytes], call: Call) -> None:
    """One request, many answers."""
    await full_duplex_call(requests, call)


async def streaming_input_call(requests: AsyncIterator[bytes], call: Call) -> None:
    """Many requests, and their size as the one answer."""
    size = 0
    async for data in requests:
        request = _parsed("StreamingInputCallRequest", data)
        await _as_expected(request, call)
        size += len(request.payload.body)
    answer = messages()["StreamingInputCallResponse"](aggregated_payload_size=size)
    await call.write(answer.SerializeToString())


async def full_duplex_call(requests: AsyncIterator[bytes], call: Call) -> None:
    """Each request is answered before the next one is read."""
    await _echo(call)
    async for data in requests:
        await _answer_all(_parsed("StreamingOutputCallRequest", data), call)


async def half_duplex_call(requests: AsyncIterator[bytes], call: Call) -> None:
    """All requests are read before the first one is answered."""
    waiting = [_parsed("StreamingOutputCallRequest", data) async for data in requests]
    for request in waiting:
        await _answer_all(request, call)


UNARY: Final[dict[str, Callable[[bytes, Call], Awaitable[bytes]]]] = {
    "EmptyCall": empty_call,
    "UnaryCall": unary_call,
    "CacheableUnaryCall": unary_call,
}
STREAMING: Final[dict[str, Callable[[AsyncIterator[bytes], Call], Awaitable[None]]]] = {
    "StreamingOutputCall": streaming_output_call,
    "StreamingInputCall": streaming_input_call,
    "FullDuplexCall": full_duplex_call,
    "HalfDuplexCall": half_duplex_call,
}
"""`UnimplementedCall` is not here, as its name says."""


def _parsed(name: str, data: bytes) -> Any:
    return messages()[name].FromString(data)


def _answer(name: str, size: int, **fields: str) -> bytes:
    payload = messages()["Payload"](body=bytes(size))
    return bytes(messages()[name](payload=payload, **fields).SerializeToString())


async def _answer_all(request: Any, call: Call) -> None:
    await _as_told(request, call)
    for one in request.response_parameters:
        if one.interval_us:
            await asyncio.sleep(one.interval_us / 1_000_000)
        call.compress(wanted=one.compressed.value)
        await call.write(_answer("StreamingOutputCallResponse", one.size))


async def _as_expected(request: Any, call: Call) -> None:
    """End the call if a request came otherwise than it says."""
    if request.HasField("expect_compressed") and request.expect_compressed.value != call.compressed:
        await call.abort(INVALID_ARGUMENT, f"it came with compressed={call.compressed}")


async def _as_told(request: Any, call: Call) -> None:
    """End the call with the status that a request asks for."""
    if request.response_status.code:
        await call.abort(request.response_status.code, request.response_status.message)


async def _echo(call: Call) -> None:
    headers = [(name, value) for name, value in call.invocation_metadata()]
    if last := [pair for pair in headers if pair[0] == ECHO_LAST]:
        call.set_trailing_metadata(last)
    if first := [pair for pair in headers if pair[0] == ECHO_FIRST]:
        await call.send_initial_metadata(first)
