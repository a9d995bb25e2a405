"""The table of permissions: who may do what, and which grant says so. Pure.

Deny wins: a grant that forbids something is stronger than any that allows it, whatever their order
and wherever they come from. What nothing allows is forbidden. A token narrows its owner: what it
came with and what its owner has must both allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from angarium.api.access import (
    ANONYMOUS,
    ANY_ACTION,
    OWN_NAMES,
    Action,
    Decision,
    Effect,
    Grant,
    Match,
    Principal,
    Proof,
    ResourceKind,
)
from angarium.api.audit import AUDIT_TOPIC
from angarium.security.principals import PasswordPrincipal, edition_of
from angarium.security.roles import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from angarium.ids import Index
    from angarium.machine.catalog.access_values import Granted, GrantRow, TokenRow, UserRow

_Held: TypeAlias = "tuple[str, Grant]"
"""A grant, and the role that it came by; an empty name: it was given to the user."""

_PROVED_BY_ROW = frozenset({Proof.PASSWORD, Proof.TOKEN, Proof.CERTIFICATE})
"""Whoever proves itself so is a user of the catalog, or nobody any more."""


DESCRIBING: Final = {
    ResourceKind.TOPIC: Action.TOPIC_DESCRIBE,
    ResourceKind.GROUP: Action.GROUP_DESCRIBE,
    ResourceKind.USER: Action.USER_DESCRIBE,
    ResourceKind.ROLE: Action.ROLE_DESCRIBE,
}
"""How it is called to know of a thing. Without it one is told that there is no such thing."""


OWN_HANDS: Final = f"{AUDIT_TOPIC} is written, kept and trimmed by the nodes alone"
"""Why no grant, not even an administrator's, lets anybody change the audit records."""

_LOOKING: Final = frozenset({Action.TOPIC_READ, Action.TOPIC_DESCRIBE})


class Rows(NamedTuple):
    """What the catalog says, as of one version."""

    version: Index
    users: Iterable[UserRow] = ()
    grants: Iterable[GrantRow] = ()
    tokens: Iterable[TokenRow] = ()


class Permissions:
    """The table as of one version of the policy."""

    def __init__(self, rows: Rows) -> None:
        self.version = rows.version
        self._users = {row.name: row for row in rows.users}
        self._tokens = {(row.owner, row.name): row for row in rows.tokens}
        self._of_roles: dict[str, list[Grant]] = {name: list(of) for name, of in BUILT_IN.items()}
        self._of_users: dict[str, list[Grant]] = {}
        for row in rows.grants:
            grant = grant_of(row.granted)
            if grant is None or (row.is_role and row.subject in BUILT_IN):
                continue
            of = self._of_roles if row.is_role else self._of_users
            of.setdefault(row.subject, []).append(grant)

    def roles_of(self, principal: Principal) -> tuple[str, ...]:
        """Return the roles that count for a principal: those it brings, and those of its user.

        Somebody else's word (a JWT) makes nobody a user of ours, whatever name it carries.
        """
        row = None if principal.proof is Proof.JWT else self._users.get(principal.name)
        roles = principal.roles if row is None else (*principal.roles, *row.roles)
        return tuple(dict.fromkeys(roles))

    def has_user(self, name: str) -> bool:
        """Tell whether there is a user of that name."""
        return name in self._users

    def identity_of(self, principal: Principal) -> str:
        """Return who a principal is among all there ever were: a user that is made anew under an
        old name is another one."""
        if principal.proof is Proof.JWT:
            return f"jwt:{principal.name}"
        row = self._users.get(principal.name)
        return f"user:{principal.name}:{0 if row is None else row.created_at}"

    def absence_of(self, principal: Principal) -> str:
        """Return why a principal is nobody any more; empty if it still is somebody."""
        # A listener for clients that cannot say who they are acts in the name of a user.
        is_listeners = principal.proof is Proof.NONE and principal != ANONYMOUS
        if principal.proof not in _PROVED_BY_ROW and not is_listeners:
            return ""
        row = self._users.get(principal.name)
        if row is None:
            return f"there is no user {principal.name!r} any more"
        if row.is_locked:
            return f"the user {principal.name!r} is locked"
        return self._replacement_of(principal, row)

    def _replacement_of(self, principal: Principal, row: UserRow) -> str:
        """Return why a user's proof is not what is kept under its name now; empty if it is."""
        token = principal.token
        kept = row if token is None else self._tokens.get((principal.name, token))
        if kept is None:
            return f"the token {token!r} of {principal.name!r} was revoked"
        if principal.since not in {None, kept.created_at}:
            if token is None:
                return f"the user {principal.name!r} is another one now"
            return f"the token {token!r} of {principal.name!r} has another secret now"
        if not isinstance(principal, PasswordPrincipal):
            return ""
        is_current = principal.edition == edition_of(row.scrypt)
        return "" if is_current else f"the user {principal.name!r} has another password now"

    def decide(
        self, principal: Principal, action: str, kind: ResourceKind, name: str = ""
    ) -> Decision:
        """Tell whether a principal may do something, and which grant decided it."""
        if principal.proof is Proof.NODE:
            return Decision(is_allowed=True, why="a node of this cluster has asked already")
        absence = self.absence_of(principal)
        if absence:
            return Decision(is_allowed=False, why=absence)
        if kind is ResourceKind.TOPIC and name == AUDIT_TOPIC:
            return self._decide_on_audit(principal, action)
        return self._decide(principal, action, kind, name)

    def _decide_on_audit(self, principal: Principal, action: str) -> Decision:
        """Tell whether somebody may do something to the audit records: look, if `audit.read` says
        so. Grants on topics give nothing here but to know of it; they may forbid."""
        decision = self._decide(principal, action, ResourceKind.TOPIC, AUDIT_TOPIC)
        if decision.grant is not None and decision.grant.effect is Effect.DENY:
            return decision
        if action not in _LOOKING:
            return Decision(is_allowed=False, why=OWN_HANDS)
        if decision.is_allowed and action == Action.TOPIC_DESCRIBE:
            return decision
        return self._decide(principal, Action.AUDIT_READ, ResourceKind.CLUSTER, "")

    def _decide(self, principal: Principal, action: str, kind: ResourceKind, name: str) -> Decision:
        decision = _judged(self._held(principal), action, kind, name)
        if not decision.is_allowed or principal.token is None:
            return decision
        narrowing = self._tokens[principal.name, principal.token].grants
        if narrowing is None:
            return decision
        narrowed = _judged(_of_token(narrowing), action, kind, name)
        if narrowed.is_allowed:
            return decision
        why = f"the token {principal.token!r} does not: {narrowed.why}"
        return Decision(is_allowed=False, why=why, grant=narrowed.grant)

    def _held(self, principal: Principal) -> Iterator[_Held]:
        if principal.proof is not Proof.JWT:
            for grant in self._of_users.get(principal.name, ()):
                yield "", grant
        for role in self.roles_of(principal):
            for grant in self._of_roles.get(role, ()):
                yield role, grant


def grant_of(granted: Granted) -> Grant | None:
    """Return what a row of the catalog means; None for one of a kind that is not known here.

    Such a row, of a newer release, can only have been made by one, and is decided by one.
    """
    try:
        kind = ResourceKind(granted.kind)
    except ValueError:
        return None
    return Grant(
        actions=granted.actions,
        kind=kind,
        name=granted.name,
        match=Match.PREFIX if granted.is_prefix else Match.EXACT,
        effect=Effect.DENY if granted.is_deny else Effect.ALLOW,
    )


def covers(grant: Grant, action: str, kind: ResourceKind, name: str) -> bool:
    """Tell whether a grant is about this. Who may do anything to a thing may know of it, too."""
    if grant.kind is not kind:
        return False
    is_named = action in grant.actions or ANY_ACTION in grant.actions
    is_implied = grant.effect is Effect.ALLOW and action == DESCRIBING.get(kind)
    if not is_named and not is_implied:
        return False
    return kind is ResourceKind.CLUSTER or names(grant, name)


def names(grant: Grant, name: str) -> bool:
    """Tell whether a grant names a resource.

    A prefix ends at a boundary: `team-a` is itself and `team-a.orders`, for dots join the words of
    a name; never `team-ab`, nor `team-a-b`, which is another word. One that ends with something
    else than a letter or a digit, as `team-a-`, brings its boundary along. Every name, the empty
    prefix, leaves out the cluster's own unless it forbids.
    """
    if grant.match is Match.EXACT:
        return name == grant.name
    prefix = grant.name
    if not prefix:
        return grant.effect is Effect.DENY or not name.startswith(OWN_NAMES)
    if not name.startswith(prefix):
        return False
    return len(name) == len(prefix) or name[len(prefix)] == "." or not prefix[-1].isalnum()


def _of_token(grants: Iterable[Granted]) -> Iterator[_Held]:
    for granted in grants:
        grant = grant_of(granted)
        if grant is not None:
            yield "", grant


def _judged(held: Iterable[_Held], action: str, kind: ResourceKind, name: str) -> Decision:
    allowing: _Held | None = None
    for role, grant in held:
        if covers(grant, action, kind, name):
            if grant.effect is Effect.DENY:
                return _decision(role, grant, is_allowed=False)
            allowing = allowing or (role, grant)
    if allowing is None:
        what = kind if kind is ResourceKind.CLUSTER else f"{kind} {name!r}"
        return Decision(is_allowed=False, why=f"no grant allows {action} on {what}")
    return _decision(*allowing, is_allowed=True)


def _decision(role: str, grant: Grant, *, is_allowed: bool) -> Decision:
    whose = f"of the role {role!r}" if role else "of its own"
    return Decision(is_allowed=is_allowed, why=f"{grant} ({whose})", grant=grant, role=role)
