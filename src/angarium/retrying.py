"""Trying again: after which errors, with which pauses, and until when. All who do so do it by this.

tries = Tries(backoff, deadline=deadline)
while True:
    try:
        return await attempt()
    except AngariumError as error:
        if not is_worth_repeating(error) or not await tries.pause():
            raise
"""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.errors import LimitExceeded, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from angarium.errors import AngariumError


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before another attempt."""

    first_s: float = 0.05
    """The pause after the first failure."""
    factor: float = 2.0
    longest_s: float = 2.0
    """Pauses grow up to this: it bounds how late it is noticed that an attempt would succeed."""
    jitter: float = 0.5
    """The share of a pause that is left to chance, so that those who failed together do not all
    come back together."""

    def __post_init__(self) -> None:
        assert 0 < self.first_s <= self.longest_s
        assert self.factor >= 1
        assert 0 <= self.jitter <= 1

    def pause_s(self, attempt: int, chance: float) -> float:
        """Return the pause after `attempt` failures (0 for the first), for `chance` in [0, 1)."""
        # 2**64 pauses would overflow nothing but patience; the exponent is bounded all the same.
        grown = min(self.longest_s, self.first_s * self.factor ** min(attempt, 64))
        return grown * (1 - self.jitter * chance)


class Tries:
    """The attempts at one thing, for as long as there is time."""

    def __init__(
        self,
        backoff: Backoff,
        *,
        deadline: float = math.inf,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`deadline` is in the event loop's time; without one there is no end to it."""
        self.failures = 0
        """Since the beginning, or the last success."""
        self._backoff = backoff
        self._deadline = deadline
        self._chance = chance

    async def pause(self, *, at_least_s: float = 0.0) -> bool:
        """Wait before the next attempt; False, at once, if the time would be up by then."""
        pause_s = self.next_pause_s(at_least_s=at_least_s)
        if pause_s is None:
            return False
        await asyncio.sleep(pause_s)
        return True

    def next_pause_s(self, *, at_least_s: float = 0.0) -> float | None:
        """Return how long to wait after one more failure; None if the time would be up by then.

        `at_least_s` is what whoever refused has asked for.
        """
        chance = self._chance()
        pause_s = max(self._backoff.pause_s(self.failures, chance), later(at_least_s, chance))
        self.failures += 1
        is_up = asyncio.get_running_loop().time() + pause_s >= self._deadline
        return None if is_up else pause_s

    def succeeded(self) -> None:
        """Begin with short pauses again."""
        self.failures = 0


LATER_SHARE: Final = 0.1
"""Who is told to wait waits up to so much longer, by chance: others were told the same."""


def later(wait_s: float, chance: float) -> float:
    """Return how long to wait if one was told to wait so long, for `chance` in [0, 1)."""
    return wait_s * (1 + LATER_SHARE * chance)


def is_worth_repeating(
    error: AngariumError, *, may_repeat: bool = True, passing: Collection[str] = ()
) -> bool:
    """Tell whether another attempt may succeed, and do no harm.

    What must not take effect twice (`may_repeat`) is repeated only after errors that are definite:
    nothing had happened then. Of limits, whoever asks wants to hear at once, but for those in
    `passing`: they are waited out.
    """
    if isinstance(error, LimitExceeded):
        return getattr(error, "limit", "") in passing
    return error.retriable and (may_repeat or not isinstance(error, OutcomeUnknown))
