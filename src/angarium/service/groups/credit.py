"""How a consumer's credit is spread over the partitions it consumes.

Every partition has a little, so that whatever comes there finds somebody; the rest is shared by
those that have been handing out lately. A consumer with less credit than partitions has one record
of each at the most, and is passed no more than its credit: the others wait at its node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

IDLE_SHARE: Final = 4
"""A partition in which nothing happens keeps one part in so many of an even share."""


def spread(credit: int, busy: Sequence[bool]) -> list[int]:
    """Return each partition's part of `credit`; at least 1, and else no more than it together.

    `busy` tells of each partition whether it had something to hand out lately.
    """
    count = len(busy)
    if not count:
        return []
    even = credit // count
    if even <= 1:
        return [1] * count
    active = sum(busy)
    if active in {0, count}:
        return [even] * count
    least = max(1, even // IDLE_SHARE)
    share = (credit - least * (count - active)) // active
    return [share if one else least for one in busy]
