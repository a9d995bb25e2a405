"""Which part of a limit of the whole cluster a node may hand out. Pure.

Shares follow use: a tenth of the limit is divided equally, so that whoever comes to a node finds
something there; the rest is divided as it was used in the last seconds. So a principal that talks
to one node, because the leader of its only partition is there, soon has nearly the whole limit at
it, and one that talks to all nodes has a part at each.

A node that had to make somebody wait counts as if it had used its equal share at the least: else
the little that it was allowed would say for a long time that it needs no more. As long as all nodes
know the same, the shares are never more than the limit together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

EQUAL_PART: Final = 0.1
"""The part of a limit that is divided equally."""


class Use(NamedTuple):
    """What a node has handed out of one limit."""

    rate: float = 0.0
    """In a second."""
    is_pressed: bool = False
    """Whether somebody had to wait."""


def share_of(limit: float, own: Use, others: Sequence[Use]) -> float:
    """Return the part of `limit` for the node that has used `own`; `others` are all other nodes."""
    nodes = len(others) + 1
    if nodes == 1:
        return limit
    weight = _weight(own, limit / nodes)
    total = weight + sum(_weight(one, limit / nodes) for one in others)
    if total <= 0:
        return limit / nodes
    return limit * (EQUAL_PART / nodes + (1 - EQUAL_PART) * (weight / total))


def _weight(use: Use, equal: float) -> float:
    return max(use.rate, equal) if use.is_pressed else use.rate
