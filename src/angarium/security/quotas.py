"""How much a principal may use: buckets, and which quotas fill them. Pure; time is handed in.

A bucket fills at a steady rate up to what comes in a second. Whoever finds it not below empty may
go, and is charged what it costs, even if that leaves a debt: so a batch larger than the bucket gets
through, and who comes next waits until the debt is paid. How long that is, is all that is told
here; who is made to wait, and who is refused, is decided by who asks.

Of the quotas that speak about a principal its own counts before its roles', and those before the
default, limit by limit. Where several roles speak, the most generous one counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from angarium.api.access import Grant, Proof, ResourceKind
from angarium.api.quotas import UNLIMITED, USED, QuotaKind, QuotaSubject
from angarium.machine.catalog.quotas import NearestLimit, nearest_limit
from angarium.security.permissions import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api.access import Principal
    from angarium.machine.catalog.access_values import QuotaRow
    from angarium.machine.catalog.creations import MakerLimits

Limit: TypeAlias = NearestLimit
"""How much, and whose quota says so."""

BURST_S: Final = 1.0
"""A bucket holds what comes in so many seconds."""

SHORTEST_S: Final = 0.000_5
"""A shorter wait is none: no timer is that precise. What it was for stays owed."""

RATES: Final[tuple[QuotaKind, ...]] = tuple(one for one in USED if one is not QuotaKind.CONNECTIONS)
"""What is limited in a second."""


class Bucket:
    """What may be used of one thing; below zero it is a debt."""

    __slots__ = ("_at", "_level", "rate")

    def __init__(self, rate: float, now: float) -> None:
        """Begin full. `rate` is in units a second, above 0; `now` is of any clock that goes on."""
        assert rate > 0
        self.rate = rate
        self._level = self.size
        self._at = now

    @property
    def size(self) -> float:
        """What it holds: never less than one, or a slow bucket would let nothing through."""
        return max(self.rate * BURST_S, 1.0)

    def set_rate(self, rate: float, now: float) -> None:
        """Fill at another rate from now on; a debt stays what it is."""
        assert rate > 0
        self._fill(now)
        self.rate = rate
        self._level = min(self._level, self.size)

    def wait_s(self, now: float) -> float:
        """Return after how many seconds there is no debt any more."""
        self._fill(now)
        wait_s = -self._level / self.rate
        return wait_s if wait_s >= SHORTEST_S else 0.0

    def take(self, amount: float, now: float) -> None:
        """Charge something; it may leave a debt."""
        self._fill(now)
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Take back a charge for what did not happen."""
        self._level = min(self._level + amount, self.size)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._level + (now - self._at) * self.rate, self.size)
            self._at = now


_OF_PRINCIPALS: Final = (QuotaSubject.USER, QuotaSubject.ROLE, QuotaSubject.DEFAULT)


class Quotas:
    """The quotas of principals as of one version of the policy."""

    def __init__(self, rows: Iterable[QuotaRow] = ()) -> None:
        self._limits = {
            (row.kind, row.subject): limits_in(row) for row in rows if row.kind in _OF_PRINCIPALS
        }

    @property
    def is_empty(self) -> bool:
        """Whether nobody is limited."""
        return not self._limits

    def limits_of(self, principal: Principal, roles: Iterable[str]) -> dict[QuotaKind, Limit]:
        """Return what limits the use of a principal that has these roles; nothing where nothing
        does."""
        # A JWT names no user of the catalog, even if a user has the same name.
        user = "" if principal.proof is Proof.JWT else principal.name
        roles = tuple(roles)
        found: dict[QuotaKind, Limit] = {}
        for kind in USED:
            limit = nearest_limit(partial(self._said, kind), user=user, roles=roles)
            if limit is not None and limit.amount != UNLIMITED:
                found[kind] = limit
        return found

    def _said(self, kind: QuotaKind, subject_kind: str, subject: str) -> int | None:
        return self._limits.get((subject_kind, subject), {}).get(kind)


def creation_limits(limits: MakerLimits) -> dict[QuotaKind, Limit]:
    """Return what limits how much a principal may create, as the catalog judges it."""
    found = {QuotaKind.TOPICS: limits.topics, QuotaKind.PARTITIONS: limits.partitions}
    return {kind: limit for kind, limit in found.items() if limit is not None}


def limits_in(row: QuotaRow) -> dict[QuotaKind, int]:
    """Return what a row of the catalog limits; what only a newer release knows is left out."""
    known = set(QuotaKind)
    return {QuotaKind(kind): amount for kind, amount in row.limits if kind in known}


class StoredLimit(NamedTuple):
    """How much the topics under a prefix may hold."""

    prefix: str
    amount: int

    def covers(self, topic: str) -> bool:
        """Tell whether a topic is under the prefix; every name leaves out the cluster's own."""
        return names(Grant(actions=(), kind=ResourceKind.TOPIC, name=self.prefix), topic)


def stored_limits(rows: Iterable[QuotaRow]) -> list[StoredLimit]:
    """Return the limits of what topics hold."""
    found = []
    for row in rows:
        amount = limits_in(row).get(QuotaKind.STORED_BYTES)
        if row.kind == QuotaSubject.TOPIC and amount not in {None, UNLIMITED}:
            assert amount is not None
            found.append(StoredLimit(row.subject, amount))
    return found
