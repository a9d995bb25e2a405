"""Grants, and who has them, between protobuf and the contract.

The contract's choices are words there; protobuf numbers them from 1, in the same order.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from angarium.api.access import Effect, Grant, Match, ResourceKind, SubjectKind
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from angarium.proto.v1 import broker_pb2 as pb

W = TypeVar("W", bound=StrEnum)


def word_number(word: StrEnum) -> int:
    """Return the number of a choice."""
    return list(type(word)).index(word) + 1


def resource_kind_of(number: int) -> ResourceKind:
    """Return what kind of thing an action is done to; it has to be said."""
    return said(ResourceKind, number, what="kind of resource")


def subject_kind_of(number: int) -> SubjectKind:
    """Return whether a user or a role is meant; it has to be said."""
    return said(SubjectKind, number, what="kind of subject")


def grant_of(message: pb.Grant) -> Grant:
    """Return a grant; what says nothing about its match and effect allows what begins so."""
    return Grant(
        actions=tuple(message.actions),
        kind=resource_kind_of(message.kind),
        name=message.name,
        match=_chosen(Match, message.match, what="match") or Match.PREFIX,
        effect=_chosen(Effect, message.effect, what="effect") or Effect.ALLOW,
    )


def grants_of(message: pb.Grants) -> tuple[Grant, ...]:
    """Return some grants."""
    return tuple(map(grant_of, message.grants))


def role_names(message: pb.Roles) -> tuple[str, ...]:
    """Return the names of roles."""
    return tuple(message.names)


def said(kind: type[W], number: int, *, what: str) -> W:
    """Return a choice that has to be made."""
    chosen = _chosen(kind, number, what=what)
    if chosen is None:
        raise InvalidArgument(f"say which {what} is meant: {', '.join(kind)}")
    return chosen


def _chosen(kind: type[W], number: int, *, what: str) -> W | None:
    words = list(kind)
    if not 0 <= number <= len(words):
        raise InvalidArgument(f"there is no {what} {number}")
    return words[number - 1] if number else None
