"""Slowing down who guesses, without locking out anybody else.

Failures are counted for a name from one source, and there they hurt: after a few, each further try
has to wait longer. They are also counted for a name from everywhere, and for a source with any
names. There somebody who has logged in from the same source before is not concerned: guessing
somebody's password must not keep them out. Of the others so many tries a second are let through,
drawn by lot: who comes often enough gets in among any number of guesses, which a pause for all, won
again and again by whoever is quickest, would not allow. A try that is not let through is refused
without a check, so a flood of them costs next to nothing.

Who shares both the source and the name with a guesser waits with them for a new login; what is
open stays open.
"""

from __future__ import annotations

import ipaddress
import math
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from angarium.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

Key = TypeVar("Key")

KEPT_MAX: Final = 8_192
"""Entries of each table. At the bound the one changed longest ago is forgotten."""

FORGIVEN_AFTER_S: Final = 600.0
"""Failures that old no longer count."""


@dataclass(slots=True)
class _Failures:
    count: int
    last: float
    until: float


class Pauses(Generic[Key]):
    """How long whoever failed has to wait before the next try, by what they have in common."""

    def __init__(self, *, free: int, first_s: float, longest_s: float) -> None:
        """The first `free` failures cost nothing; from then on the pause doubles."""
        self._free = free
        self._first_s = first_s
        self._longest_s = longest_s
        self._failures: dict[Key, _Failures] = {}

    def left_s(self, key: Key, now: float) -> float:
        """Return how long the next try has to wait."""
        known = self._failures.get(key)
        return 0.0 if known is None else max(known.until - now, 0.0)

    def failed(self, key: Key, now: float) -> None:
        """Count a failure."""
        known = self._failures.pop(key, None)
        count = 1
        if known is not None and now - known.last < FORGIVEN_AFTER_S:
            count = known.count + 1
        over = count - self._free
        pause_s = 0.0
        if over > 0:
            pause_s = min(self._first_s * 2.0 ** min(over - 1, 30), self._longest_s)
        if len(self._failures) >= KEPT_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[key] = _Failures(count, now, now + pause_s)

    def forgive(self, key: Key) -> None:
        """Forget the failures of somebody who succeeded."""
        self._failures.pop(key, None)


@dataclass(slots=True)
class _Tries:
    failures: int = 0
    last: float = -math.inf
    slot: int = 0
    """Which second the two numbers below are of."""
    now: int = 0
    before: int = 0
    """Tries in this second, and in the one before."""


class Draws(Generic[Key]):
    """Of many tries that have something in common, lets so many a second through, by lot."""

    def __init__(self, *, free: int, per_s: float) -> None:
        """The first `free` failures cost nothing."""
        self._free = free
        self._per_s = per_s
        self._tries: dict[Key, _Tries] = {}

    def admits(self, key: Key, now: float, chance: float) -> bool:
        """Count a try, and tell whether it is let through, for `chance` in [0, 1)."""
        known = self._tries.get(key)
        if known is None or known.failures <= self._free:
            return True
        if now - known.last >= FORGIVEN_AFTER_S:
            del self._tries[key]
            return True
        slot = int(now)
        if slot != known.slot:
            known.before = known.now if slot == known.slot + 1 else 0
            known.slot, known.now = slot, 0
        known.now += 1
        return chance * max(known.now, known.before) < self._per_s

    def failed(self, key: Key, now: float) -> None:
        """Count a failure."""
        known = self._tries.pop(key, None)
        if known is None or now - known.last >= FORGIVEN_AFTER_S:
            known = _Tries()
        known.failures += 1
        known.last = now
        if len(self._tries) >= KEPT_MAX:
            del self._tries[next(iter(self._tries))]
        self._tries[key] = known


class Slowing:
    """Decides whether a login may be tried now."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._pairs: Pauses[tuple[str, str]] = Pauses(free=5, first_s=0.5, longest_s=16.0)
        self._names: Draws[str] = Draws(free=50, per_s=2.0)
        self._sources: Draws[str] = Draws(free=50, per_s=20.0)
        self._costly_sources: Draws[str] = Draws(free=20, per_s=2.0)
        self._proven: dict[tuple[str, str], None] = {}

    def check(self, source: str, name: str) -> None:
        """Raise `LimitExceeded` if it is too early for another try with a name from a source."""
        left_s = self._pairs.left_s((source_of(source), name), self._clock())
        if left_s > 0:
            raise _too_many(left_s)

    def draw(self, source: str, name: str, *, is_costly: bool = False) -> None:
        """Count a try; raises `LimitExceeded` if it is too early for it, or was not drawn among
        all that come from the same source, or for the same name.

        A costly check is one that takes a core for a while: fewer of those are let through.
        """
        self.check(source, name)
        pair, now = (source_of(source), name), self._clock()
        if pair in self._proven:
            return
        sources = self._costly_sources if is_costly else self._sources
        is_drawn = self._names.admits(name, now, self._chance())
        # Both count it, whatever the first one says.
        is_drawn = sources.admits(pair[0], now, self._chance()) and is_drawn
        if not is_drawn:
            raise _too_many(0.5 + self._chance())

    def failed(self, source: str, name: str) -> None:
        """Note a failure."""
        pair, now = (source_of(source), name), self._clock()
        self._pairs.failed(pair, now)
        if pair not in self._proven:
            self._names.failed(name, now)
            self._sources.failed(pair[0], now)
            self._costly_sources.failed(pair[0], now)

    def succeeded(self, source: str, name: str) -> None:
        """Note a success: the failures before it were typing mistakes."""
        pair = (source_of(source), name)
        self._pairs.forgive(pair)
        self._proven.pop(pair, None)
        if len(self._proven) >= KEPT_MAX:
            del self._proven[next(iter(self._proven))]
        self._proven[pair] = None


def _too_many(wait_s: float) -> LimitExceeded:
    return LimitExceeded(
        "failed_logins_max",
        f"too many logins failed; try again in {wait_s:.1f} s",
        retry_after=round(wait_s, 3),
    )


def source_of(address: str) -> str:
    """Return what counts as one source: an IPv4 address, or the network of an IPv6 one.

    Everybody has 2^64 addresses of IPv6 and may use a new one for each try.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6:
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return address
