"""Who should have which partition of a stream group.

Every member has the floor or the ceiling of partitions over members: nobody is idle while another
has two. Within these bounds each partition goes to a member in the region where it lives, if there
is one, and among those to the member that rates it highest; a member's rating of a partition
depends on nothing but the two of them. So everybody who knows the
same members computes the same assignment, and one that comes or goes moves little more than its own
share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch.hashing import key_hash
from angarium.delivery.backoff import mixed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def name_hash(name: str) -> int:
    """Return the number that stands for a name in ratings, the same everywhere and always."""
    return key_hash(name.encode())


def rating(member: int, thing: int) -> int:
    """Return how much a member (by its `name_hash`) wants a thing, a key's hash for example."""
    return mixed(member, thing)


def assignment(
    members: Collection[str],
    partitions: Collection[tuple[str, int]],
    *,
    before: Mapping[tuple[str, int], str] | None = None,
    regions: Mapping[str, str] | None = None,
    homes: Mapping[tuple[str, int], str] | None = None,
) -> dict[tuple[str, int], str]:
    """Return the member of each partition (topic and number); empty if there are no members.

    `regions` says where members are, and `homes` where partitions live, as far as that is known.
    `before` is what was assigned last, if somebody remembers: then nothing moves that need not.
    """
    if not members:
        return {}
    hashes = {member: name_hash(member) for member in sorted(members)}
    order = sorted(partitions)
    things = {one: mixed(name_hash(one[0]), one[1]) for one in order}
    quota, extra = divmod(len(order), len(hashes))
    room = _Room(quota, extra, hashes)
    chosen: dict[tuple[str, int], str] = {}
    for one in order:
        member = before.get(one) if before else None
        # What a member has stays with it within its share: moving a partition makes its records
        # wait until the leases of the old owner have ended.
        if member in hashes and room.take(member):
            chosen[one] = member
    where, lives = regions or {}, homes or {}
    wishes = sorted(
        (
            # Shares come first: a region with many partitions and one member does not overload it.
            (_is_near(where.get(member), lives.get(one)), rating(number, things[one]), member, one)
            for one in order
            if one not in chosen
            for member, number in hashes.items()
        ),
        reverse=True,
    )
    # The strongest wish first, whoever has it; a member whose share is full has no more wishes.
    for _, _, member, one in wishes:
        if one not in chosen and room.take(member):
            chosen[one] = member
    return chosen


def _is_near(region: str | None, home: str | None) -> bool:
    return bool(home) and region == home


class _Room:
    """How many partitions each member may still take."""

    def __init__(self, quota: int, extra: int, members: Collection[str]) -> None:
        self._left = dict.fromkeys(members, quota)
        self._extra = extra
        self._has_extra: set[str] = set()

    def take(self, member: str) -> bool:
        """Give a member one more, if its share allows."""
        if self._left[member] > 0:
            self._left[member] -= 1
            return True
        if self._extra and member not in self._has_extra:
            self._extra -= 1
            self._has_extra.add(member)
            return True
        return False
