"""Waiting no longer than a request may take."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from angarium.wire import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def in_time(seconds: float, what: str) -> AsyncIterator[None]:
    """Raise `DeadlineExceeded`, which every caller knows how to take, if the block takes longer.

    A bare `TimeoutError` is for the code beside it; past that it would end whichever task met it.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise DeadlineExceeded(f"{what} took longer than {seconds:g} s") from None
