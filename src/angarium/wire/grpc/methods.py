"""What a server can be asked for: handlers, and how each gets its requests.

A unary handler gets the request and the call. It returns the answer's bytes from a coroutine, which
becomes a task; or it returns nothing at once and says `Call.finish` or `Call.refuse` later. The
second way costs no task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.wire.grpc.call import Call
    from angarium.wire.grpc.requests import Requests

UnaryHandler: TypeAlias = "Callable[[bytes, Call], Coroutine[Any, Any, bytes] | None]"
StreamingHandler: TypeAlias = "Callable[[Requests, Call], Coroutine[Any, Any, bytes | None]]"


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a service: exactly one of the two handlers."""

    unary: UnaryHandler | None = None
    streaming: StreamingHandler | None = None


def unary(handler: UnaryHandler) -> Method:
    """Return a method with one request; its answer may be one message or, by `write`, several."""
    return Method(unary=handler)


def streaming(handler: StreamingHandler) -> Method:
    """Return a method with any number of requests; what the handler returns is the last message."""
    return Method(streaming=handler)
