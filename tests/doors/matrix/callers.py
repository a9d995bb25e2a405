"""Those who call: every built-in role, nobody in particular, and some with bounds of their own."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from angarium.api.access import Effect, Grant, ResourceKind
from angarium.security.roles import BUILT_IN

PASSWORD: Final = "the password of all of them"

NARROWED: Final = (
    Grant(actions=("topic.read",), kind=ResourceKind.TOPIC, name="team-a"),
    Grant(actions=("topic.describe",), kind=ResourceKind.TOPIC, name="team-ab"),
    Grant(actions=("group.describe",), kind=ResourceKind.GROUP, name="team-a"),
    Grant(actions=("cluster.describe",), kind=ResourceKind.CLUSTER),
)
"""What the token may do, of all that its owner may."""

TEAM: Final = tuple(
    Grant(actions=("*",), kind=kind, name="team-a")
    for kind in (
        *(ResourceKind.TOPIC, ResourceKind.GROUP),
        *(ResourceKind.TRANSACTION, ResourceKind.PRODUCER),
    )
)
"""Everything of one team, and nothing of `team-ab`, which is another."""

BANNED: Final = tuple(
    Grant(actions=("*",), kind=kind, effect=Effect.DENY)
    for kind in (ResourceKind.TOPIC, ResourceKind.GROUP)
)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Somebody, how it proves who it is, and what it has."""

    name: str
    """What it is called in the tables."""
    user: str
    """Its name in the cluster; empty: it has none."""
    roles: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    """Its own, beside those of its roles."""
    narrowing: tuple[Grant, ...] | None = None
    """It comes with a token that is good for this much; None: with a password."""

    @property
    def held(self) -> tuple[Grant, ...]:
        """All grants that count for it, but for what a token takes away."""
        return (*self.grants, *(one for role in self.roles for one in BUILT_IN[role]))

    def authorization(self, token: str) -> str | None:
        """Return its `Authorization` header; `token` is that of who comes with one."""
        if not self.user:
            return None
        if self.narrowing is not None:
            return f"Bearer {token}"
        return "Basic " + base64.b64encode(f"{self.user}:{PASSWORD}".encode()).decode()


CALLERS: Final = (
    *(Caller(name=role, user=f"the-{role}", roles=(role,)) for role in BUILT_IN),
    Caller(name="no role", user="the-newcomer"),
    Caller(name="own grants", user="the-team", grants=TEAM),
    Caller(name="banned admin", user="the-banned", roles=("admin",), grants=BANNED),
    Caller(name="narrow token", user="the-owner", roles=("admin",), narrowing=NARROWED),
    Caller(name="anonymous", user=""),
)
