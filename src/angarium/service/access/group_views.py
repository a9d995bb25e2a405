"""What is shown of a group, or of moves: of topics only those that the caller may know of."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import GroupInfo, GroupMember, Moved
    from angarium.api.balance import BalanceInfo

    MayKnow: TypeAlias = Callable[[str], bool]
    """Tells whether a topic may be known of."""


def group_shown(group: GroupInfo, may_know: MayKnow) -> GroupInfo:
    """Return a group without what names other topics; its lag stays that of the whole.

    Its settings are shown as they are, the name of its dead-letter topic among them: whoever
    alters them gives them as a whole, and would lose what was not shown.
    """
    positions = tuple(one for one in group.positions if may_know(one.topic))
    members = tuple(_member_shown(one, may_know) for one in group.members)
    return replace(group, positions=positions, members=members, listed_lag=group.lag)


def groups_shown(groups: tuple[GroupInfo, ...], may_know: MayKnow) -> tuple[GroupInfo, ...]:
    """Return the groups of a list, likewise."""
    return tuple(group_shown(one, may_know) for one in groups)


def moves_shown(moved: tuple[Moved, ...], may_know: MayKnow) -> tuple[Moved, ...]:
    """Return what a seek did, without what names other topics."""
    return tuple(one for one in moved if may_know(one.topic))


def balance_shown(balance: BalanceInfo, may_know: MayKnow) -> BalanceInfo:
    """Return how evening out stands, without moves of other topics; they are counted, though."""
    return replace(balance, moves=tuple(one for one in balance.moves if may_know(one.topic)))


def _member_shown(member: GroupMember, may_know: MayKnow) -> GroupMember:
    partitions = tuple(one for one in member.partitions if may_know(one[0]))
    return replace(member, partitions=partitions)
