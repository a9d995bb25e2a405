"""How tests run a coroutine within a deadline, and wait until something is so."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
P = ParamSpec("P")

DEADLINE_S = 120.0
"""What a test may take on a busy machine: a deadline tells more than pytest's timeout does."""

SOON_S = 60.0
"""How long anything may take there that happens soon."""


def run(work: Coroutine[Any, Any, T], *, within_s: float = DEADLINE_S) -> T:
    """Run `work` on the loop that nodes use, within a deadline."""

    async def in_time() -> T:
        async with asyncio.timeout(within_s):
            return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(in_time())


def on_a_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test on an event loop, and not for ever."""

    @wraps(test)
    def running(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S):
                await test(*args, **kwargs)

        asyncio.run(main())

    return running


async def eventually(is_so: Callable[[], object], *, within_s: float = SOON_S) -> None:
    """Poll until `is_so`, or fail at the deadline."""
    async with asyncio.timeout(within_s):
        while not is_so():  # noqa: ASYNC110  (a poll is what works for any condition)
            await asyncio.sleep(0.001)
