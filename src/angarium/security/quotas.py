"""How much a principal may use: buckets, and which quotas fill them. Pure; time is handed in.

A bucket fills at a steady rate up to what comes in a second. Whoever finds it not below empty may
go, and is charged what it costs, even if that leaves a debt: so a batch larger than the bucket gets
through, and who comes next waits until the debt is paid. How long that is, is all that is told
here; who is made to wait, and who is refused, is decided by who asks.

Of the quotas that speak about a principal its own counts before its roles', and those before the
default, limit by limit. Where several roles speak, the most generous one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api.access import Grant, Proof, ResourceKind
from angarium.api.quotas import OF_PRINCIPALS, UNLIMITED, QuotaKind, QuotaSubject
from angarium.security.permissions import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from angarium.api.access import Principal
    from angarium.machine.catalog.access_values import QuotaRow

BURST_S: Final = 1.0
"""A bucket holds what comes in so many seconds."""

SHORTEST_S: Final = 0.000_5
"""A shorter wait is none: no timer is that precise. What it was for stays owed."""

RATES: Final[tuple[QuotaKind, ...]] = tuple(
    one for one in OF_PRINCIPALS if one is not QuotaKind.CONNECTIONS
)
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


class Limit(NamedTuple):
    """How much, and who says so."""

    amount: int
    why: str


class Quotas:
    """The quotas of principals as of one version of the policy."""

    def __init__(self, rows: Iterable[QuotaRow] = ()) -> None:
        self._users: dict[str, Mapping[QuotaKind, int]] = {}
        self._roles: dict[str, Mapping[QuotaKind, int]] = {}
        self._default: Mapping[QuotaKind, int] = {}
        for row in rows:
            limits = limits_in(row)
            if row.kind == QuotaSubject.USER:
                self._users[row.subject] = limits
            elif row.kind == QuotaSubject.ROLE:
                self._roles[row.subject] = limits
            elif row.kind == QuotaSubject.DEFAULT:
                self._default = limits

    @property
    def is_empty(self) -> bool:
        """Whether nobody is limited."""
        return not (self._users or self._roles or self._default)

    def limits_of(self, principal: Principal, roles: Iterable[str]) -> dict[QuotaKind, Limit]:
        """Return what limits a principal that has these roles; nothing where nothing does."""
        found: dict[QuotaKind, Limit] = {}
        roles = tuple(roles)
        for kind in OF_PRINCIPALS:
            limit = self._limit_of(principal, roles, kind)
            if limit is not None and limit.amount != UNLIMITED:
                found[kind] = limit
        return found

    def _limit_of(
        self, principal: Principal, roles: tuple[str, ...], kind: QuotaKind
    ) -> Limit | None:
        # Somebody else's word makes nobody a user of ours, whatever name it carries.
        if principal.proof is not Proof.JWT:
            own = self._users.get(principal.name, {}).get(kind)
            if own is not None:
                return Limit(own, f"the quota of user {principal.name!r}")
        said = [
            Limit(amount, f"the quota of role {role!r}")
            for role in roles
            if (amount := self._roles.get(role, {}).get(kind)) is not None
        ]
        if said:
            return max(said, key=_generosity)
        default = self._default.get(kind)
        return None if default is None else Limit(default, "the default quota")


def _generosity(limit: Limit) -> tuple[bool, int]:
    return limit.amount == UNLIMITED, limit.amount


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
