"""Waiting for something to become true, by looking again and again until a deadline."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

LOOK_EVERY_S = 0.02


def now_micros() -> int:
    """Return the time of a history: a clock that never goes back."""
    return time.monotonic_ns() // 1_000


async def eventually(
    look: Callable[[], Awaitable[T]], *, within_s: float = 60.0, what: str = ""
) -> T:
    """Return the first true answer of `look`; it may also fail with our own errors meanwhile.

    Raises `TimeoutError` with what was seen last.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    seen: object = None
    while True:
        try:
            answer = await look()
            if answer:
                return answer
            seen = answer
        except AngariumError as error:
            seen = error
        if loop.time() >= deadline:
            what = what or getattr(look, "__name__", "it")
            raise TimeoutError(f"not within {within_s:g} s: {what}; seen last: {seen!r}")
        await asyncio.sleep(LOOK_EVERY_S)
