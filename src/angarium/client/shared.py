"""Work that several callers wait for: none of them may end it for the others."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from angarium.wire import Unreachable

T = TypeVar("T")


async def shared(work: asyncio.Task[T]) -> T:
    """Return what `work` returns; a caller that is cancelled leaves it running.

    Raises `Unreachable` if the work itself was cancelled, because the client is closing.
    """
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if work.cancelled() and (caller is None or not caller.cancelling()):
            raise Unreachable("the client was closed") from None
        raise


def heard(work: asyncio.Task[T]) -> None:
    """Look at how `work` ended: whoever waits still gets its error, but nobody has to."""
    if not work.cancelled():
        work.exception()
