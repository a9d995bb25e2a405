"""Descriptors of this process that connections may not use: the log, its peers and TLS need them.

A new descriptor has the lowest free number, so its number tells whether the numbers below are all
taken. Connections are accepted up to a number; those above it are a reserve, as the log keeps one
of disk:

- in the first half new clients are refused with the reason, and other nodes are served;
- in the second half a new connection is cut at once, before it could wait for a handshake there.

So a crowd of connections can neither keep the log from its next file nor bring `accept` to the
limit, where it would fail again and again.
"""

from __future__ import annotations

import os
import resource
from functools import cache
from typing import TYPE_CHECKING, Final

from angarium.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

RESERVE_MAX: Final = 1_024
"""Descriptors in reserve; fewer where few are allowed."""

RESERVE_SHARE: Final = 4
"""The reserve is at most this part of all: a quarter."""


class Descriptors:
    """What is left of the descriptors of one process."""

    def __init__(self, allowed: int, probe: Callable[[], int]) -> None:
        """Watch `allowed` descriptors; `probe` returns the number that the next one gets, and
        raises `OSError` if there is none."""
        self.allowed = allowed
        self.reserved = min(RESERVE_MAX, allowed // RESERVE_SHARE)
        self._probe = probe

    @property
    def are_short(self) -> bool:
        """Whether the next descriptor is one of the reserve: new clients are refused."""
        return self._next() >= self.allowed - self.reserved

    @property
    def are_gone(self) -> bool:
        """Whether half of the reserve is used, too: every new connection is cut."""
        return self._next() >= self.allowed - self.reserved // 2

    def refusal(self) -> LimitExceeded:
        """Return what a new client is told."""
        return LimitExceeded(
            "descriptors",
            "this node has few descriptors left and keeps them for its log; try another node",
        )

    def reasons(self) -> list[str]:
        """Return why this node should not be relied on, if it is for this."""
        if not self.are_short:
            return []
        return [
            f"refuses new clients: of {self.allowed} descriptors (ulimit -n) it keeps the last "
            f"{self.reserved} for its log; raise the limit, or lower connections_max"
        ]

    def _next(self) -> int:
        try:
            return self._probe()
        except OSError:
            return self.allowed


@cache
def own_descriptors() -> Descriptors:
    """Return those of this process, as many as it may have at the first call."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        allowed = os.sysconf("SC_OPEN_MAX")
    own = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def probe() -> int:
        number = os.dup(own)
        os.close(number)
        return number

    return Descriptors(allowed, probe)
