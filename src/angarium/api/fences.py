"""How far a reader of several partitions may go, so that no key is read out of its order.

A topic that was given partitions has layouts, and a fence for each in every older partition
(docs/decisions/0025). A reader's gate for a layout is open once it has read every older partition
up to the layout's fence; what lies behind the fences, and in the partitions that came with the
layout, comes after that. Pure: clients, doors and Spark ask it alike.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api.topics import TopicInfo

_END: Final = 1 << 63
"""Behind every offset."""


class Gates:
    """Which gates of one topic are open to one reader, who says how far it is."""

    def __init__(self) -> None:
        self.opened = 0
        """Up to which layout of the topic everything has been read that comes before it."""
        self._stops: dict[int, int] = {}
        """By partition, the layout at whose fence a node has stopped: all before it has come."""
        self._reached: Mapping[int, int] = {}

    def stop(self, partition: int, *, layout: int) -> None:
        """Note that a node has stopped a reader who named `layout`, at the fence of the next."""
        self._stops[partition] = layout + 1

    def look(self, info: TopicInfo, positions: Mapping[int, int]) -> None:
        """Open what is open for who reads next at `positions`; `is_open` is of this moment."""
        if info.layouts:
            # Before a fence there may be a gap, which a node says by stopping there.
            reached = {one: max(at, self._stopped_at(info, one)) for one, at in positions.items()}
            self.opened = gates_open(info, reached, self.opened)
            self._reached = reached

    def is_open(self, info: TopicInfo, partition: int) -> bool:
        """Tell whether no gate is in the way of a partition."""
        if self._stops.get(partition, 0) > self.opened:
            return False  # whether `info` tells of that fence or not
        bound = bound_of(info, partition, self.opened) if info.layouts else None
        return bound is None or self._reached.get(partition, 0) < bound

    def lacks(self, info: TopicInfo) -> bool:
        """Tell whether a node has stopped at a fence that `info` does not tell of."""
        return any(
            layout >= len(info.layouts) or _fence(info, one, layout) is None
            for one, layout in self._stops.items()
        )

    def _stopped_at(self, info: TopicInfo, partition: int) -> int:
        stop = self._stops.get(partition)
        return 0 if stop is None else bound_of(info, partition, stop - 1) or 0


def gates_open(info: TopicInfo, positions: Mapping[int, int], opened: int = 0) -> int:
    """Return up to which layout gates are open for who reads next at `positions`.

    Those up to `opened` are known to be. A partition without a position was not begun.
    """
    layouts = info.layouts
    while opened + 1 < len(layouts):
        older = range(layouts[opened])
        if not all(_has_passed(info, one, opened + 1, positions) for one in older):
            break
        opened += 1
    return opened


def bound_of(info: TopicInfo, partition: int, opened: int) -> int | None:
    """Return before which offset a reader has to stop, with gates open up to `opened`; None: it
    need not, as far as `info` tells."""
    if bisect_right(info.layouts, partition) > opened:
        return 0
    return _fence(info, partition, opened + 1)


def stretch(info: TopicInfo, positions: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Return up to where to read on in every partition, before asking again.

    `ends` are where another reader is that kept to fences: nothing behind it is read.
    """
    # At an end, all before the fences that the other one has passed is read, gaps or not.
    reached = {
        number: max(at, _END) if at >= end else at
        for number, (at, end) in enumerate(zip(positions, ends, strict=True))
    }
    opened = gates_open(info, reached)
    bounds: list[int] = []
    for number, end in enumerate(ends):
        bound = bound_of(info, number, opened)
        bounds.append(end if bound is None else min(bound, end))
    if any(at < bound for at, bound in zip(positions, bounds, strict=True)):
        return bounds
    return list(ends)


def _fence(info: TopicInfo, partition: int, layout: int) -> int | None:
    fences = info.partitions[partition].fences
    at = layout - bisect_right(info.layouts, partition) - 1
    return fences[at] if 0 <= at < len(fences) else None


def _has_passed(info: TopicInfo, partition: int, layout: int, positions: Mapping[int, int]) -> bool:
    fence, position = _fence(info, partition, layout), positions.get(partition)
    # A fence that nobody has told of may be anywhere.
    if fence is None or position is None:
        return False
    return max(position, info.partitions[partition].start_offset or 0) >= fence
