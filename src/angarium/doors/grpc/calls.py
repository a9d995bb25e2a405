"""From bytes to bytes: what every call has in common.

Handlers get parsed requests and return messages or raise. Whatever they raise becomes the status
that `refusals` has for it, and so does a request that is not the message it should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from angarium.wire.grpc import unary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from google.protobuf.message import Message

    from angarium.wire.grpc import Call, Method

RequestT = TypeVar("RequestT", bound="Message")


def answered(
    request_class: type[RequestT], handler: Callable[[RequestT, Call], Awaitable[Message]]
) -> Method:
    """Return a method with one request and one answer."""
    parsed = request_class.FromString

    async def answer(data: bytes, call: Call) -> bytes:
        return (await handler(parsed(data), call)).SerializeToString()

    return unary(answer)


def begun(
    request_class: type[RequestT],
    begin: Callable[[RequestT, Call], Coroutine[Any, Any, None] | None],
) -> Method:
    """Return a method that is answered later, by a function and without a task of its own.

    `begin` returns a coroutine where it cannot do without.
    """
    parsed = request_class.FromString

    def start(data: bytes, call: Call) -> None:
        work = begin(parsed(data), call)
        if work is not None:
            call.attend(work)

    return unary(start)
