"""The quotas of the catalog: how they are put, changed and forgotten, and which of them counts.

What they come to is decided elsewhere: by `security.quotas` for what is used, by `creations` for
what is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.errors import InvalidArgument, NotFound
from angarium.machine.catalog.access_values import QuotaRow
from angarium.machine.catalog.creations import PARTITIONS, TOPICS, MakerLimits
from angarium.machine.outcomes import Done, Refused, limited, oversized, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from angarium.machine.catalog.access_commands import QuotaDelete, QuotaPut
    from angarium.machine.catalog.access_values import UserRow
    from angarium.machine.catalog.creations import Maker

QUOTAS_MAX: Final = 10_000
"""Rows. At the limit a new one is refused."""

SUBJECT_CHARACTERS_MAX: Final = 256
"""Of a user, a role, a prefix of topics. A longer one is refused."""

LIMITS_MAX: Final = 16
"""Of one quota. More are refused."""

WORD_CHARACTERS_MAX: Final = 32
"""Of what is limited, and of what kind of subject. A longer word is refused."""

AMOUNT_MAX: Final = 1 << 60
UNLIMITED: Final = -1

USER: Final = "user"
"""The kind of subject that has to be there, and takes its quota along."""

ROLE: Final = "role"
DEFAULT: Final = "default"

ADMIN: Final = "admin"
"""The built-in role of administrators, as `api.access` calls it."""

TOPICS_BY_DEFAULT: Final = 1_000
"""Topics that a principal may have created, unless a quota says otherwise or it is an
administrator: a tenth of what a cluster holds."""

PARTITIONS_BY_DEFAULT: Final = 10_000
"""Partitions that it may have created: ten for each of those topics."""

_BUILT_IN: Final[Mapping[tuple[str, str], Mapping[str, int]]] = {
    (ROLE, ADMIN): {TOPICS: UNLIMITED, PARTITIONS: UNLIMITED},
    (DEFAULT, ""): {TOPICS: TOPICS_BY_DEFAULT, PARTITIONS: PARTITIONS_BY_DEFAULT},
}
"""What counts where the row of a subject says nothing, or there is none. Every replica judges by
it, so other numbers need a feature level."""

BY_DEFAULT: Final = "the default quota"
BUILT_IN_DEFAULT: Final = "the built-in default"
"""Where a limit comes from, if no quota of the user or of a role has it."""


class NearestLimit(NamedTuple):
    """The limit that counts for a principal, and whose quota says so."""

    amount: int
    why: str


def nearest_limit(
    said: Callable[[str, str], int | None], *, user: str, roles: Iterable[str]
) -> NearestLimit | None:
    """Return the limit that counts: the user's own, else the most generous of its roles', else the
    default. `said` returns what the quota of a subject says; an empty `user` has none of its own.
    """
    own = said(USER, user) if user else None
    if own is not None:
        return NearestLimit(own, f"the quota of user {user!r}")
    of_roles = [
        NearestLimit(amount, f"the quota of role {role!r}")
        for role in roles
        if (amount := said(ROLE, role)) is not None
    ]
    if of_roles:
        return max(of_roles, key=lambda one: (one.amount == UNLIMITED, one.amount))
    default = said(DEFAULT, "")
    return None if default is None else NearestLimit(default, BY_DEFAULT)


class QuotaTable:
    """Every quota, by what kind of subject it is about and which."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], QuotaRow] = {}

    def put(self, command: QuotaPut, users: Collection[str]) -> Done | Refused:
        """Set some limits, and say nothing any more about others."""
        verdict = _judged(command)
        if verdict is not None:
            return verdict
        if command.kind == USER and command.subject not in users:
            return refused(NotFound, f"there is no user {command.subject!r}")
        key = (command.kind, command.subject)
        known = self.rows.get(key)
        if known is None and len(self.rows) >= QUOTAS_MAX:
            return limited("QUOTAS_MAX", f"the cluster has {QUOTAS_MAX} quotas")
        limits = {} if known is None else dict(known.limits)
        limits.update(command.limits)
        for kind in command.cleared:
            limits.pop(kind, None)
        if len(limits) > LIMITS_MAX:
            return oversized("LIMITS_MAX", f"a quota has up to {LIMITS_MAX} limits")
        if not limits:
            return Done(changed=self.rows.pop(key, None) is not None)
        row = QuotaRow(*key, tuple(sorted(limits.items())))
        self.rows[key] = row
        return Done(changed=row != known)

    def delete(self, command: QuotaDelete) -> Done | Refused:
        """Forget a quota."""
        if self.rows.pop((command.kind, command.subject), None) is None:
            return refused(NotFound, f"there is no quota of {command.kind} {command.subject!r}")
        return Done()

    def forget(self, kind: str, subject: str) -> None:
        """Forget the quota of somebody who is no more, if there is one."""
        self.rows.pop((kind, subject), None)

    def add(self, row: QuotaRow) -> None:
        """Keep a quota that was judged before."""
        self.rows[row.kind, row.subject] = row

    def limits_of(self, maker: Maker, users: Mapping[str, UserRow]) -> MakerLimits:
        """Return how much a principal may create."""
        user = users.get(maker.user)
        roles = dict.fromkeys((*maker.roles, *(() if user is None else user.roles)))

        def limit(kind: str) -> NearestLimit | None:
            found = nearest_limit(
                lambda subject_kind, subject: self._said(subject_kind, subject, kind),
                user=maker.user,
                roles=roles,
            )
            if found is None or found.amount == UNLIMITED:
                return None
            if found.why == BY_DEFAULT and self._written(DEFAULT, "", kind) is None:
                return NearestLimit(found.amount, BUILT_IN_DEFAULT)
            return found

        return MakerLimits(maker, limit(TOPICS), limit(PARTITIONS))

    def _said(self, subject_kind: str, subject: str, kind: str) -> int | None:
        amount = self._written(subject_kind, subject, kind)
        if amount is None:
            amount = _BUILT_IN.get((subject_kind, subject), {}).get(kind)
        return amount

    def _written(self, subject_kind: str, subject: str, kind: str) -> int | None:
        row = self.rows.get((subject_kind, subject))
        return None if row is None else dict(row.limits).get(kind)


def _judged(command: QuotaPut) -> Refused | None:
    words = [command.kind, *(kind for kind, _ in command.limits), *command.cleared]
    if len(words) > 1 + 2 * LIMITS_MAX:
        return oversized("LIMITS_MAX", f"a quota has up to {LIMITS_MAX} limits")
    if any(not 0 < len(one) <= WORD_CHARACTERS_MAX for one in words):
        return refused(InvalidArgument, "what a quota is about has 1 to 32 characters")
    if len(command.subject) > SUBJECT_CHARACTERS_MAX:
        return oversized("SUBJECT_CHARACTERS_MAX", "a quota is about too long a name")
    for kind, amount in command.limits:
        if amount != UNLIMITED and not 0 < amount <= AMOUNT_MAX:
            return refused(InvalidArgument, f"the limit of {kind} is above 0, not {amount}")
    return None
