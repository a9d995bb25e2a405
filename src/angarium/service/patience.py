"""Waiting out elections, for clients that were never told to try again.

A client of ours repeats what failed definitely and may succeed soon: a partition between two
leaders, a node that is just coming up. It asks the other nodes meanwhile, which finds a leader even
if this node is cut off, so the wire door never waits. Clients of other doors, and those of earlier
brokers, take the first error for the end of it. So these doors repeat for them, for a few seconds.
Only what changed nothing is repeated: what may have been stored is told as it is.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from angarium.errors import AngariumError, DiskFull
from angarium.retrying import Backoff, Tries, is_worth_repeating
from angarium.wire.errors import RemoteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.api import Ack, GroupBroker, PublishRequest
    from angarium.service.publishing import Answer

PATIENCE_S: Final = 5.0
"""How long a request waits for the cluster. Then the client is told what the last try was told."""

PAUSES: Final = Backoff(first_s=0.02, longest_s=0.2)
"""Between two tries."""

WAITING: Final = frozenset(
    {"publish", "fetch", "find_offset", "subscribe", "consume", "create_topic"}
)
"""The methods of the contract that wait for a leader."""

T = TypeVar("T")
B = TypeVar("B", bound="GroupBroker")


def patient(broker: B) -> B:
    """Return a broker that does what `broker` does, and waits where that cannot for a moment."""
    return cast("B", _Patient(broker))


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return what `attempt` returns, repeated while it fails definitely and for a moment only."""
    tries = Tries(PAUSES, deadline=asyncio.get_running_loop().time() + PATIENCE_S)
    while True:
        try:
            return await attempt()
        except AngariumError as error:
            if not is_passing(error) or not await tries.pause():
                raise


def is_passing(error: AngariumError) -> bool:
    """Tell whether nothing has happened, and it may be otherwise in a moment.

    A disk stays full for longer, and whether an error that only a newer release knows is definite
    nobody can tell. What is left is what doors call UNAVAILABLE (`doors.status`).
    """
    if isinstance(error, DiskFull | RemoteError):
        return False
    return is_worth_repeating(error, may_repeat=False)


class _Patient:
    """Only what needs a leader waits for one; everything else passes through."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker
        self._trying: set[asyncio.Task[None]] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._broker, name)
        if name == "begin_publish":
            return partial(self._begin_publish, method)
        if name not in WAITING:
            return method
        return lambda *arguments, **named: patiently(lambda: method(*arguments, **named))

    def _begin_publish(
        self,
        begin: Callable[[PublishRequest, Answer], bool],
        request: PublishRequest,
        answer: Answer,
    ) -> bool:
        """Publish without a task; one is made for what has to be repeated."""

        def answered(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError) and is_passing(outcome):
                task = asyncio.get_running_loop().create_task(self._try_again(request, answer))
                self._trying.add(task)
                task.add_done_callback(self._trying.discard)
            else:
                answer(outcome)

        return begin(request, answered)

    async def _try_again(self, request: PublishRequest, answer: Answer) -> None:
        try:
            acks: tuple[Ack, ...] = await self.publish(request)
        except AngariumError as error:
            answer(error)
        else:
            answer(acks)
