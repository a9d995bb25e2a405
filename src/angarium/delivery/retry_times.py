"""When one leader of a group lets its failed records be tried again.

A failed attempt is committed with a time, `not_before`, and with the delay it was computed from. A
leader whose clock was ahead commits a time that is too late by as much as its clock was wrong. So
each leader waits until `not_before`, or for the delay since it first saw the attempt, whichever is
sooner. Without that bound one wrong clock blocks a group for hours after it has been corrected.

The times of first sight are kept in the leader's time. When that time leaps, because a clock was
set, `leapt` moves them by as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.ids import Micros
    from angarium.machine.cursors import Group

STALE_MAX: Final = 1_024
"""Attempts that are over and still remembered, at most, beyond as many as there are."""


def retry_of(offset: int) -> str:
    """Return how a group says that it waits for the next attempt at a record."""
    return f"another attempt at record {offset}"


class RetryTimes:
    """What one leader knows of the attempts of one group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._seen: dict[int, tuple[int, int]] = {}
        """By offset: the `not_before` of the last attempt, and when this leader first saw it."""

    def look(self, now: Micros) -> None:
        """See every attempt that is committed by now, and forget those that are over."""
        seen, attempts = self._seen, self.group.attempts
        self._seen = {offset: (known.not_before, now) for offset, known in attempts.items()}
        for offset, (not_before, first_seen) in seen.items():
            if offset in attempts and attempts[offset].not_before == not_before:
                self._seen[offset] = not_before, first_seen

    def at(self, offset: int, now: Micros) -> int:
        """Return when a record that has failed may be tried again."""
        known = self.group.attempts[offset]
        not_before, first_seen = self._seen.get(offset, (None, now))
        if not_before != known.not_before:
            first_seen = now
            self._forget_stale()
            self._seen[offset] = known.not_before, now
        # Planted as retries-wait-for-the-clock.
        return min(known.not_before, first_seen + known.delay_max(self.group.settings))

    def soonest(self, now: Micros) -> tuple[int, int] | None:
        """Return the time and the offset of the next retry that is not due yet, if there is one.

        In a stream group that is the first record that has failed, as it holds back all others.
        """
        offsets = sorted(self.group.attempts)[:1] if self.group.kind.is_ordered else None
        found = ((self.at(one, now), one) for one in offsets or self.group.attempts)
        return min((one for one in found if one[0] > now), default=None)

    def leapt(self, by: int) -> None:
        """Follow the leader's time, which has leapt by so many µs; negative: back."""
        self._seen = {offset: (one, seen + by) for offset, (one, seen) in self._seen.items()}

    def _forget_stale(self) -> None:
        attempts = self.group.attempts
        if len(self._seen) > 2 * len(attempts) + STALE_MAX:
            self._seen = {one: seen for one, seen in self._seen.items() if one in attempts}
