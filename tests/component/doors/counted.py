"""Somebody with a quota, as doors see it: what a permitted broker shows of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api.access import Principal, Proof
from angarium.api.quotas import QuotaKind
from angarium.security.quotas import Limit
from angarium.service.access.presences import Presences
from angarium.service.access.tolls import Tolls
from angarium.telemetry.throttling import ThrottleMeters

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.service.access.tolls import Toll


class CountedPrincipal:
    """One principal, its toll and its places."""

    def __init__(self, **limits: int) -> None:
        self.principal = Principal(name="alice", proof=Proof.PASSWORD)
        self.meters = ThrottleMeters()
        self._tolls = Tolls(self.meters)
        self.presences = Presences(self._tolls)
        self.toll: Toll | None = None
        self.limit(**limits)

    def limit(self, **limits: int) -> None:
        """Give it another quota."""
        found = {QuotaKind(kind): Limit(amount, "a test") for kind, amount in limits.items()}
        self.toll = self._tolls.of(self.principal, found)

    def enter(self) -> Callable[[], None]:
        """Take a place."""
        return self.presences.enter(self.principal)

    @property
    def open(self) -> int:
        """How many places are taken."""
        return self.presences.by_key().get("user:alice", 0)
