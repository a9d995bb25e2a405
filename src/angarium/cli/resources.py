"""Grants as people write them: `topic.read,topic.publish` on `topic:team-a*`."""

from __future__ import annotations

from typing import Final, NamedTuple

from angarium.api.access import (
    ANY_ACTION,
    Action,
    Effect,
    Grant,
    Match,
    ResourceKind,
    SubjectKind,
)
from angarium.cli.complaints import Refusal

_KIND_OF_FAMILY: Final = {
    "deadletter": ResourceKind.TOPIC,
    "token": ResourceKind.USER,
    "grant": ResourceKind.CLUSTER,
    "metrics": ResourceKind.CLUSTER,
    "quota": ResourceKind.CLUSTER,
}
"""For actions whose first word is not the kind itself."""


class Resource(NamedTuple):
    """What is named, and how."""

    kind: ResourceKind
    name: str
    match: Match


def resource_in(text: str, *, kind: ResourceKind | None = None) -> Resource:
    """Read a resource; `kind` is what it is if it does not say so."""
    word, colon, name = text.partition(":")
    if text == ResourceKind.CLUSTER.value:
        return Resource(ResourceKind.CLUSTER, "", Match.PREFIX)
    if colon and word in set(ResourceKind):
        kind = ResourceKind(word)
    elif kind is None:
        kinds = ", ".join(ResourceKind)
        raise Refusal(f"{text!r} is no resource: write KIND:NAME, where KIND is one of {kinds}")
    else:
        name = text
    if kind is ResourceKind.CLUSTER:
        return Resource(kind, "", Match.PREFIX)
    if name.endswith("*"):
        return Resource(kind, name.removesuffix("*"), Match.PREFIX)
    if not name:
        raise Refusal(f"{text!r} names nothing; {kind}:* is every {kind}")
    return Resource(kind, name, Match.EXACT)


def kind_of(action: str) -> ResourceKind:
    """Return what an action is done to."""
    family = action.partition(".")[0]
    if action not in set(Action):
        raise Refusal(f"{action!r} is no action; there are: {', '.join(Action)}")
    return _KIND_OF_FAMILY.get(family) or ResourceKind(family)


def grant_in(actions: str, resource: str, *, is_deny: bool = False) -> Grant:
    """Read a grant."""
    named = tuple(one.strip() for one in actions.split(",") if one.strip())
    for one in named:
        if one != ANY_ACTION:
            kind_of(one)
    found = resource_in(resource)
    return Grant(
        actions=named,
        kind=found.kind,
        name=found.name,
        match=found.match,
        effect=Effect.DENY if is_deny else Effect.ALLOW,
    )


def subject_in(text: str) -> tuple[SubjectKind, str]:
    """Read to whom a grant is given."""
    word, colon, name = text.partition(":")
    if not colon or word not in set(SubjectKind) or not name:
        raise Refusal(f"{text!r} is neither user:NAME nor role:NAME")
    return SubjectKind(word), name


def shown_resource(grant: Grant) -> str:
    """Return a grant's resource as `resource_in` reads it."""
    if grant.kind is ResourceKind.CLUSTER:
        return grant.kind.value
    return f"{grant.kind}:{grant.name}{'*' if grant.match is Match.PREFIX else ''}"
