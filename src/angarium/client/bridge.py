"""Words of the asynchronous client for programs without an event loop.

Each is taken over by one line, with its signature, types and documentation. It is carried out where
the event loop runs, and returns when it is done:

    class SyncDeadLetters(Bridged[DeadLetters]):
        show = blocking(DeadLetters.show)
"""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")
A = TypeVar("A")
There_co = TypeVar("There_co", covariant=True)

_END: Final = object()


class Elsewhere(Protocol):
    """A thread with an event loop."""

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there and return what it returns."""


class Bridged(Generic[There_co]):
    """Something that lives on an event loop, used from other threads."""

    def __init__(self, elsewhere: Elsewhere, there: There_co) -> None:
        self._elsewhere = elsewhere
        self._there = there


def blocking(
    word: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Bridged[A], P], T]:
    """Return a word that waits, instead of being awaited."""

    @wraps(word)
    def wait(self: Bridged[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._elsewhere.call(word(self._there, *args, **kwargs))

    return wait


def stepping(
    word: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[Bridged[A], P], Iterator[T]]:
    """Return a word that yields what the other one does, fetched one by one."""

    @wraps(word)
    def step(self: Bridged[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        there = self._elsewhere
        items = there.call(_called(word, self._there, *args, **kwargs))
        while (item := there.call(_next(items))) is not _END:
            yield item

    _say_returns(step, str(signature(word).return_annotation).replace("Async", "", 1))
    return step


def leading_to(
    kind: Callable[[Elsewhere, T], S], word: Callable[Concatenate[A, P], T]
) -> Callable[Concatenate[Bridged[A], P], S]:
    """Return a word whose result has such words of its own, as `kind` takes them over.

    A client belongs to the event loop in which it is first used, so even what does not wait is
    made there.
    """

    @wraps(word)
    def lead(self: Bridged[A], /, *args: P.args, **kwargs: P.kwargs) -> S:
        there = self._elsewhere
        return kind(there, there.call(_called(word, self._there, *args, **kwargs)))

    _say_returns(lead, kind.__name__)
    return lead


def _say_returns(word: Callable[..., object], annotation: str) -> None:
    """Have `help` say what comes back here: `wraps` has taken over what comes back there."""
    word.__dict__["__signature__"] = signature(word).replace(return_annotation=annotation)


async def _called(word: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return word(*args, **kwargs)


async def _next(items: AsyncIterator[T]) -> Any:
    return await anext(items, _END)
