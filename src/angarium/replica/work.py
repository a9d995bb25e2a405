"""Work that blocks, handed out step by step.

Housekeeping (writing segments behind, saving snapshots) is written as generators: each `yield`
hands out a piece of work that waits for a disk, and goes on when it is done. The simulator does the
work at once (`do_now`), the node's event loop does it in a thread, and both run the same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Work: TypeAlias = "Callable[[], None]"

T = TypeVar("T")


def do_now(steps: Generator[Work, None, T]) -> T:
    """Do every piece of work where it comes up, and return what the generator returns."""
    failure: BaseException | None = None
    while True:
        try:
            work = next(steps) if failure is None else steps.throw(failure)
        except StopIteration as finished:
            result: T = finished.value
            return result
        failure = None
        try:
            work()
        except Exception as error:
            failure = error
