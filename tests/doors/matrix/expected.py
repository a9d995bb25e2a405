"""What a caller ought to be told, worked out from the rules and the grants.

Written from docs/reference/permissions.md, and sharing no code with the node's own decision
(`security.permissions`): a mistake there shows here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from angarium.api.access import Effect, Match, ResourceKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.doors.matrix.callers import Caller

    from angarium.api.access import Grant
    from angarium.service.access.rules import Rule


class Outcome(StrEnum):
    """What becomes of a call."""

    ALLOWED = "allowed"
    DENIED = "denied"
    """PERMISSION_DENIED: it is there, and not for this caller."""
    ABSENT = "hidden"
    """NOT_FOUND, in the same words as if there were none."""
    LESS = "less shown"
    """Answered, with what everybody may know."""
    UNPROVEN = "not let in"
    """UNAUTHENTICATED."""


HIDDEN: Final = {
    ResourceKind.TOPIC: "topic.describe",
    ResourceKind.GROUP: "group.describe",
    ResourceKind.USER: "user.describe",
    ResourceKind.ROLE: "role.describe",
}
"""What looks as if it were not there to who may not know of it."""

MAKING: Final = {"topic.create", "group.consume", "user.create", "role.create"}
"""What can be done where nothing is yet, so that a refusal tells nothing."""


def outcome_of(caller: Caller, rule: Rule, given: Mapping[str, Any]) -> Outcome:
    """Return what a call with these arguments ought to become."""
    if not caller.user:
        return Outcome.UNPROVEN
    for asks in rule.asks:
        for name in asks.names(given):
            is_own = asks.kind is ResourceKind.USER and name == caller.user
            if is_own and rule.own and not asks.of_everybody and caller.narrowing is None:
                continue
            if may(caller, asks.action, asks.kind, name):
                continue
            if rule.instead:
                return Outcome.LESS
            hiding = HIDDEN.get(asks.kind)
            is_hidden = hiding is not None and asks.action not in MAKING and not is_own
            if is_hidden and not may(caller, str(hiding), asks.kind, name):
                return Outcome.ABSENT
            return Outcome.DENIED
    return Outcome.ALLOWED


def shown_to(caller: Caller, rule: Rule, names: Iterable[str]) -> frozenset[str]:
    """Return those of `names` that a list shows."""
    shows = rule.shows
    assert shows is not None
    return frozenset(
        one
        for one in names
        if may(caller, shows.action, shows.kind, one)
        or (
            rule.own
            and caller.narrowing is None
            and shows.kind is ResourceKind.USER
            and one == caller.user
        )
    )


def may(caller: Caller, action: str, kind: ResourceKind, name: str) -> bool:
    """Tell whether the grants of a caller allow something."""
    owner = _allow(caller.held, action, kind, name)
    if caller.narrowing is None:
        return owner
    return owner and _allow(caller.narrowing, action, kind, name)


def _allow(grants: Iterable[Grant], action: str, kind: ResourceKind, name: str) -> bool:
    about = [one for one in grants if one.kind is kind and _names(one, name)]
    for one in about:
        if one.effect is Effect.DENY and {action, "*"} & set(one.actions):
            return False
    allowing = [one for one in about if one.effect is Effect.ALLOW]
    # Who may do anything to a thing may know of it.
    if action == HIDDEN.get(kind) and allowing:
        return True
    return any({action, "*"} & set(one.actions) for one in allowing)


def _names(grant: Grant, name: str) -> bool:
    if grant.kind is ResourceKind.CLUSTER:
        return True
    if grant.match is Match.EXACT:
        return grant.name == name
    if not grant.name:
        # Every name: not those of the cluster itself, unless it is a ban.
        return grant.effect is Effect.DENY or not name.startswith("angarium.")
    if not grant.name[-1].isalnum():
        return name.startswith(grant.name)
    return name == grant.name or name.startswith(f"{grant.name}.")
