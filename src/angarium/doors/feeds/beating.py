"""Saying every now and then, on a stream where nothing comes, that it is there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

T = TypeVar("T")


async def beating(
    coming: AsyncIterator[T], beat: Callable[[], Awaitable[None]], *, seconds: float
) -> AsyncGenerator[T, None]:
    """Yield what comes, and call `beat` whenever nothing has come for so long."""
    waiting: asyncio.Task[T] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(_next(coming))
            done, _ = await asyncio.wait((waiting,), timeout=seconds)
            if not done:
                await beat()
                continue
            try:
                found = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield found
    finally:
        if waiting is not None:
            waiting.cancel()


async def _next(coming: AsyncIterator[T]) -> T:
    return await anext(coming)
