"""Many things to wait for, a few of them at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


async def in_turns(works: Iterable[Work], *, at_once: int) -> None:
    """Do all of it; raises what went wrong first, when the rest has been ended."""
    turn = asyncio.Semaphore(at_once)

    async def one(work: Work) -> None:
        async with turn:
            await work()

    try:
        async with asyncio.TaskGroup() as tasks:
            for work in works:
                tasks.create_task(one(work))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
