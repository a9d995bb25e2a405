"""Between what calls back and what awaits: a future that is given its answer once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

T = TypeVar("T")


def settling(future: asyncio.Future[T]) -> Callable[[T | Exception], None]:
    """Return what gives `future` its answer: a value, or an error that awaiting it raises.

    If nobody waits any more, nothing happens: what was done stays done.
    """

    def settle(answer: T | Exception) -> None:
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    return settle
