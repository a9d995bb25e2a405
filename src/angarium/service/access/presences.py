"""What principals have open here: connections of the wire, and streams of other doors.

Counted for everybody, so that a quota that is set later finds them counted; a request that comes
and goes takes no place, nor does a connection of HTTP or gRPC, which is nobody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api.access import ANONYMOUS, Proof
from angarium.service.access.tolls import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.api.access import Principal
    from angarium.service.access.tolls import Tolls


class Presences:
    """How many places each principal has taken."""

    def __init__(self, tolls: Tolls) -> None:
        self._tolls = tolls
        self._open: dict[str, int] = {}

    def by_key(self) -> Mapping[str, int]:
        """Return how many each has taken, by what nodes call it; nobody is in it with none."""
        return self._open

    def enter(self, principal: Principal) -> Callable[[], None]:
        """Take a place, until the returned callable is called; raises `QuotaExceeded`."""
        if principal is ANONYMOUS or principal.proof is Proof.NODE:
            return _leave_nothing
        key = key_of(principal)
        toll = self._tolls.find(key)
        if toll is not None:
            toll.check_connections(self._open.get(key, 0))
        self._open[key] = self._open.get(key, 0) + 1
        is_in = True

        def leave() -> None:
            nonlocal is_in
            if is_in:
                is_in = False
                self._open[key] -= 1
                if not self._open[key]:
                    del self._open[key]

        return leave


def _leave_nothing() -> None:
    pass
