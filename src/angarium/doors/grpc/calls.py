"""From bytes to bytes: what every call has in common.

Handlers get parsed requests and return messages or raise. Parsing happens here and not in gRPC, so
that a caller who sends garbage is told what every other wrong input is told.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import grpc
import grpc.aio

from angarium.doors.grpc.inflating import inflated
from angarium.doors.grpc.refusals import expected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from google.protobuf.message import Message
    from grpc.aio import ServicerContext

    from angarium.doors.grpc.refusals import Refusals

Context: TypeAlias = "ServicerContext[bytes, bytes]"
"""The call under way, as gRPC shows it. Messages are bytes by then."""

RequestT = TypeVar("RequestT", bound="Message")


class Calls:
    """Makes gRPC's handlers out of ours."""

    def __init__(self, refusals: Refusals, *, message_bytes_max: int) -> None:
        self._refusals = refusals
        self._inflated = partial(inflated, bytes_max=message_bytes_max)

    def unary(
        self,
        request_class: type[RequestT],
        handler: Callable[[RequestT, Context], Awaitable[Message]],
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        """Serve a call with one request and one answer."""
        parsed, inflate = request_class.FromString, self._inflated

        async def call(data: bytes, context: Context) -> bytes:
            try:
                return (await handler(parsed(inflate(data)), context)).SerializeToString()
            except Exception as error:  # each becomes an answer
                data = b""  # see `without_frames`
                await self._refusals.refuse(context, error)

        return grpc.unary_unary_rpc_method_handler(call)

    def streaming(
        self, handler: Callable[[AsyncIterator[bytes], Context], Awaitable[None]]
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        """Serve a call with streams both ways; the handler writes to the context by itself."""

        async def call(requests: AsyncIterator[bytes], context: Context) -> None:
            try:
                await handler(requests, context)
            except Exception as error:  # each becomes an answer
                # Reads and writes of a call that has just ended, by the client or by a closing
                # door, fail before we hear of the end. There is nobody to tell, and nothing is
                # wrong.
                if not isinstance(expected(error), grpc.aio.BaseError):
                    await self._refusals.refuse(context, error)

        return grpc.stream_stream_rpc_method_handler(call, request_deserializer=self._inflated)
