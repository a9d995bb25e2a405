"""Whether the client of a WebSocket may still say who it is when the socket is open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.wire.http.messages import Request

FaceT = TypeVar("FaceT")


def log_in_of(
    request: Request, log_in: Callable[..., Awaitable[FaceT]] | None
) -> Callable[[str | None], Awaitable[FaceT]] | None:
    """Return how it does so; None for one that has said it in a header, and where nobody has to."""
    if log_in is None or request.header(b"authorization") is not None:
        return None
    return partial(log_in, source=request.source)
