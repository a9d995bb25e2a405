"""The principal that is charged for the topics and partitions that a call creates.

A permitted broker sets it around each call that may create some, so that it need not be passed
through every layer between. Without one, as for what nodes create themselves, they count for no
quota.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.machine.catalog import Maker

    FindMaker: TypeAlias = Callable[[], "Maker | None"]


def no_maker() -> None:
    """Return None: for tasks of a node, which begin with the context of the call that starts them.

    Without it, what they create would count for the principal that happened to call.
    """


_FIND_MAKER: Final[ContextVar[FindMaker]] = ContextVar("angarium_find_maker", default=no_maker)


@contextmanager
def counting_for(find_maker: FindMaker) -> Iterator[None]:
    """Let what is created inside count for the principal that `find_maker` returns then."""
    token = _FIND_MAKER.set(find_maker)
    try:
        yield
    finally:
        _FIND_MAKER.reset(token)


def current_maker() -> Maker | None:
    """Return the principal that counts at the moment; None: what is created counts for none."""
    return _FIND_MAKER.get()()
