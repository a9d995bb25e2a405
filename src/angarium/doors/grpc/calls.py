"""From bytes to bytes: what every call has in common.

Handlers get parsed requests and return messages or raise. Parsing happens here and not in gRPC, so
that a caller who sends garbage is told what every other wrong input is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

import grpc
import grpc.aio

from angarium.doors.grpc.refusals import expected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from google.protobuf.message import Message
    from grpc.aio import ServicerContext

    from angarium.doors.grpc.refusals import Refusals

Context: TypeAlias = "ServicerContext[bytes, bytes]"
"""The call under way, as gRPC shows it. Messages are bytes by then."""

RequestT = TypeVar("RequestT", bound="Message")


def unary(
    request_class: type[RequestT],
    handler: Callable[[RequestT, Context], Awaitable[Message]],
    refusals: Refusals,
) -> grpc.RpcMethodHandler[bytes, bytes]:
    """Serve a call with one request and one answer."""
    parsed = request_class.FromString

    async def call(data: bytes, context: Context) -> bytes:
        try:
            return (await handler(parsed(data), context)).SerializeToString()
        except Exception as error:  # each becomes an answer
            await refusals.refuse(context, error)

    return grpc.unary_unary_rpc_method_handler(call)


def streaming(
    handler: Callable[[AsyncIterator[bytes], Context], Awaitable[None]],
    refusals: Refusals,
) -> grpc.RpcMethodHandler[bytes, bytes]:
    """Serve a call with streams both ways; the handler writes to the context by itself."""

    async def call(requests: AsyncIterator[bytes], context: Context) -> None:
        try:
            await handler(requests, context)
        except Exception as error:  # each becomes an answer
            # Reads and writes of a call that has just ended, by the client or by a closing door,
            # fail before we hear of the end. There is nobody to tell, and nothing is wrong.
            if not isinstance(expected(error), grpc.aio.BaseError):
                await refusals.refuse(context, error)

    return grpc.stream_stream_rpc_method_handler(call)
