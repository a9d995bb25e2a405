"""Which replicas go where: spread first, then as many for each node, then as many bytes."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from angarium.ids import RaftGroupId
from angarium.machine.catalog.placement import Loads, chosen_replicas
from angarium.machine.catalog.regions import Wish
from angarium.node.balance.layout import put_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import NodeId
    from angarium.machine.catalog.values import Node
    from angarium.node.balance.layout import Layout

APART_MIN: Final = 2
"""Nodes that differ by less than this are even: moving one would only swap them."""

BYTES_APART_MIN: Final = 256 << 20
"""Nodes whose bytes differ by less are even enough, however little they have."""

BYTES_APART_SHARE: Final = 0.2
"""The same as a share of what a node has on average. Sizes change all the time; what is written
meanwhile must not move anything."""

SWAPS_MAX: Final = 1_000
"""Swaps in one plan. Beyond, the next plan goes on."""

TRIES_MAX: Final = 32
"""Large partitions of a node that are tried for a swap."""

NEIGHBOURS_MAX: Final = 8
"""Partitions of about the right size that are tried for each of them."""


# --- spread -----------------------------------------------------------------------------------


def spread_out(layout: Layout, nodes: Sequence[Node]) -> None:
    """Move replicas out of regions and zones that they share while another one has none."""
    by_area: dict[tuple[str, str], list[NodeId]] = {}
    for node, area in layout.areas.items():
        by_area.setdefault(area, []).append(node)
    if len(by_area) == 1:
        return
    least = {count: _least(layout, nodes, count) for count in {*map(len, layout.replicas.values())}}
    for group, partition in layout.partitions.items():
        if partition.is_fixed:
            continue
        enough = least[len(partition.replicas)]
        while layout.crowding(layout.replicas[group]) > enough:
            step = _better(layout, group, by_area)
            if step is None:
                break
            layout.move(group, *step)


def _better(
    layout: Layout, group: RaftGroupId, by_area: dict[tuple[str, str], list[NodeId]]
) -> tuple[NodeId, NodeId] | None:
    """Return who should give its replica to whom, so that fewer share a region or a zone."""
    best: tuple[tuple[int, int], int, NodeId, NodeId] | None = None
    replicas = layout.replicas[group]
    for leaving in (one for one in replicas if layout.may_give(one, group)):
        others = [one for one in replicas if one != leaving]
        now = layout.company(others, leaving)
        hosts = {layout.hosts[one] for one in others}
        for nodes in by_area.values():
            then = layout.company(others, nodes[0])
            if then >= now:
                continue
            free = [one for one in nodes if layout.hosts[one] not in hosts]
            if not free:
                continue
            arriving = min(free, key=lambda one: (layout.counts[one], one))
            if not layout.may_move(group, leaving, arriving):
                continue
            gain = (then[0] - now[0], then[1] - now[1])
            rank = (gain, layout.counts[arriving] - layout.counts[leaving], leaving, arriving)
            best = rank if best is None else min(best, rank)
    return None if best is None else best[2:]


def _least(layout: Layout, nodes: Sequence[Node], replication: int) -> tuple[int, int]:
    """Return how many share a region or a zone where there is all the choice in the world."""
    group = RaftGroupId(0)
    chosen = chosen_replicas(nodes, Wish(replication), group=group, loads=Loads())
    return (0, 0) if chosen is None else layout.crowding(chosen)


# --- as many ----------------------------------------------------------------------------------


def even_replicas(layout: Layout) -> None:
    """Move replicas from who has most to who has least, as long as that makes them more even.

    Without labels nobody has two more than another in the end. With labels nobody has whom it
    could give one to.
    """
    while _evened(layout):
        pass


def _evened(layout: Layout) -> bool:
    order = sorted((count, node) for node, count in layout.counts.items())
    barred: set[tuple[NodeId, NodeId]] = set()
    moved = False
    while order:
        # Who has least and finds no giver is out: whoever comes next has at least as much.
        few, low = order.pop(0)
        for at in range(len(order) - 1, -1, -1):
            many, high = order[at]
            if many < few + APART_MIN:
                break
            group = None if (high, low) in barred else _chosen(layout, high, low)
            if group is None:
                barred.add((high, low))
                continue
            layout.move(group, high, low)
            del order[at]
            put_in(order, many - 1, high)
            put_in(order, few + 1, low)
            moved = True
            break
    return moved


def _chosen(layout: Layout, high: NodeId, low: NodeId) -> RaftGroupId | None:
    """Return what `high` may give to `low`, of a size that makes their bytes even, too."""
    if not layout.may_give_any(high, low):
        return None
    ideal = max(layout.stored[high] - layout.stored[low], 0) // 2
    for those in (layout.held[high], layout.spent[high]):
        for _, group in _about(those, ideal):
            if layout.may_move(group, high, low):
                return group
    return None


def _about(held: list[tuple[int, RaftGroupId]], size: int) -> Iterator[tuple[int, RaftGroupId]]:
    """Yield what is held, that of about this size first."""
    after = bisect_left(held, (size,))
    before = after - 1
    while before >= 0 or after < len(held):
        is_after = before < 0 or (
            after < len(held) and held[after][0] - size <= size - held[before][0]
        )
        if is_after:
            yield held[after]
            after += 1
        else:
            yield held[before]
            before -= 1


# --- as many bytes ----------------------------------------------------------------------------


def even_bytes(layout: Layout) -> None:
    """Swap large partitions for small ones where nodes with as many replicas differ in bytes."""
    for _ in range(SWAPS_MAX):
        if not _swapped(layout):
            return


def _swapped(layout: Layout) -> bool:
    order = sorted((stored, node) for node, stored in layout.stored.items())
    if len(order) < 2:
        return False
    mean = sum(stored for stored, _ in order) / len(order)
    apart_min = max(BYTES_APART_MIN, mean * BYTES_APART_SHARE)
    much, high = order[-1]
    for little, low in order:
        if much - little <= apart_min:
            return False
        pair = _pair(layout, high, low, much - little)
        if pair is not None:
            layout.move(pair[0], high, low)
            layout.move(pair[1], low, high)
            return True
    return False


def _pair(
    layout: Layout, high: NodeId, low: NodeId, apart: int
) -> tuple[RaftGroupId, RaftGroupId] | None:
    """Return what to swap so that the two are a good deal closer."""
    for large, group in reversed(layout.held[high][-TRIES_MAX:]):
        if not layout.may_move(group, high, low):
            continue
        for tried, (small, other) in enumerate(_about(layout.held[low], large - apart // 2)):
            if tried == NEIGHBOURS_MAX:
                break
            is_worth_it = apart // 8 <= large - small <= apart - apart // 8
            if is_worth_it and layout.may_move(other, low, high):
                return group, other
    return None
