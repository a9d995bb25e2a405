"""How many topics and partitions each principal has created that still exist, and how many it may.

The count and the limit are compared when the entry that creates is applied, so requests to several
nodes at once cannot exceed a limit together. A creator is one of all principals there ever were: a
user that is deleted and created again begins at zero, and what the former one created counts for no
quota any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.errors import InvalidArgument, TopicQuotaExceeded
from angarium.machine.outcomes import Refused, oversized, refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.machine.catalog.quotas import NearestLimit
    from angarium.machine.catalog.values import Topic

TOPICS: Final = "topics"
PARTITIONS: Final = "partitions"
"""The kinds of limit, as quotas call them."""

CREATOR_CHARACTERS_MAX: Final = 512
"""Of `Maker.creator`. A longer one is refused."""

ROLES_MAX: Final = 1_024
"""Roles that a principal brings. More are refused."""


class Maker(msgspec.Struct, frozen=True, array_like=True):
    """The principal that asks for topics or partitions, as its node knows it."""

    creator: str
    """The principal's identity, as topics keep it. No identity is given twice."""
    user: str = ""
    """The user of the catalog whose quota and roles count; empty: a JWT names the principal."""
    roles: tuple[str, ...] = ()
    """The roles that its proof names, besides those of the user."""


class Made(NamedTuple):
    """How much one principal has created that still exists."""

    topics: int = 0
    partitions: int = 0


class MakerLimits(NamedTuple):
    """What limits the principal that asks; None: nothing does."""

    maker: Maker
    topics: NearestLimit | None
    partitions: NearestLimit | None


class Creations:
    """The counts of all principals, computed from what topics say about their creators."""

    __slots__ = ("by_creator",)

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self.by_creator: dict[str, Made] = {}
        for topic in topics:
            self.add(topic)

    def of(self, creator: str) -> Made:
        """Return how much a principal has created that still exists."""
        return self.by_creator.get(creator, Made())

    def add(self, topic: Topic, sign: int = 1) -> None:
        """Count a topic, or with -1 count it no more."""
        if topic.creator:
            self._add(topic.creator, topics=sign)
        for creator, partitions in topic.partitions_by:
            self._add(creator, partitions=sign * partitions)

    def _add(self, creator: str, *, topics: int = 0, partitions: int = 0) -> None:
        made = self.of(creator)
        made = Made(made.topics + topics, made.partitions + partitions)
        if made == Made():
            self.by_creator.pop(creator, None)
        else:
            self.by_creator[creator] = made

    def fault(
        self, limits: MakerLimits | None, *, topics: int = 0, partitions: int
    ) -> Refused | None:
        """Return why a principal may not create that many more; None if it may."""
        if limits is None:
            return None
        maker = limits.maker
        if not 0 < len(maker.creator) <= CREATOR_CHARACTERS_MAX:
            return refused(InvalidArgument, "what a creator is called is too long or empty")
        if len(maker.roles) > ROLES_MAX:
            return oversized("ROLES_MAX", f"a principal brings {len(maker.roles)} roles")
        made = self.of(maker.creator)
        for kind, more, before, limit in (
            (TOPICS, topics, made.topics, limits.topics),
            (PARTITIONS, partitions, made.partitions, limits.partitions),
        ):
            if more and limit is not None and before + more > limit.amount:
                return refused(TopicQuotaExceeded, _excess(maker, kind, more, before, limit))
        return None


def created_by(
    counted: tuple[tuple[str, int], ...], maker: Maker | None, partitions: int
) -> tuple[tuple[str, int], ...]:
    """Return how many partitions count for each principal, after `maker` created some more."""
    if maker is None:
        return counted
    by_creator = dict(counted)
    by_creator[maker.creator] = by_creator.get(maker.creator, 0) + partitions
    return tuple(sorted(by_creator.items()))


def _excess(maker: Maker, kind: str, more: int, before: int, limit: NearestLimit) -> str:
    whose = f"user:{maker.user}" if maker.user else "role:ROLE"
    return (
        f"{kind}: {maker.user or maker.creator!r} has created {before} {kind} that still exist, "
        f"and {more} more would exceed the limit of {limit.amount} ({limit.why}); delete topics, "
        f"or have the limit raised: `angarium quota set {whose} --{kind} N`"
    )
