"""What a read may not miss (C4).

A follower may be a moment behind, and one that is cut off for as long as that lasts; so a plain
fetch is not held against what other nodes have acknowledged. It is held against what its own node
has acknowledged or shown before, in this life of its process or an earlier one: a node does not go
back. A fresh fetch, for which the leader makes sure that it still leads, sees everything that
anybody was told before it began. And no fetch passes over what lies before the end that it names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from angarium.modes import DeliveryMode
from angarium.testing.history import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import NodeId, RaftGroupId
    from angarium.testing.history import History

TOLD, BEGUN = 0, 1


def c4_high_water_is_never_stale(history: History) -> Iterator[str]:
    """A read-index read sees what was acknowledged, or seen by another one, before it began."""
    by_group: dict[RaftGroupId, list[tuple[int, int, int]]] = defaultdict(list)
    for publish in history.publishes:
        consistent = publish.mode is DeliveryMode.CONSISTENT
        if publish.result is Result.OK and consistent and publish.completed is not None:
            end = publish.base_offset + len(publish.values)
            by_group[publish.group].append((publish.completed, TOLD, end))
    for one in history.transactions:
        for group, (_, end, told) in one.placed.items():
            by_group[group].append((told, TOLD, end))
    for read in history.high_waters:
        by_group[read.group].append((read.completed, TOLD, read.end))
        by_group[read.group].append((read.invoked, BEGUN, read.end))
    for group, timeline in by_group.items():
        known = 0
        for time, kind, end in sorted(timeline, key=lambda moment: (moment[0], -moment[1])):
            if kind == TOLD:
                known = max(known, end)
            elif end < known:
                yield f"group {group}: a read begun at {time} saw the end {end}, known was {known}"


def c4_a_node_does_not_go_back(history: History) -> Iterator[str]:
    """A fetch sees what its node has acknowledged, or shown to anybody, before it began."""
    by_node: dict[tuple[RaftGroupId, NodeId], list[tuple[int, int, int]]] = defaultdict(list)
    for publish in history.publishes:
        if publish.result is not Result.OK or publish.provisional or publish.node is None:
            continue
        if publish.mode is DeliveryMode.CONSISTENT and publish.completed is not None:
            end = publish.base_offset + len(publish.values)
            by_node[publish.group, publish.node].append((publish.completed, TOLD, end))
    for read in history.high_waters:
        by_node[read.group, read.node].append((read.completed, TOLD, read.end))
    for fetch in history.fetches:
        if fetch.end is not None:
            by_node[fetch.group, fetch.node].append((fetch.completed, TOLD, fetch.end))
            by_node[fetch.group, fetch.node].append((fetch.invoked, BEGUN, fetch.end))
    for (group, node), timeline in by_node.items():
        known = 0
        for time, kind, end in sorted(timeline, key=lambda moment: (moment[0], -moment[1])):
            if kind == TOLD:
                known = max(known, end)
            elif end < known:
                yield (
                    f"group {group}: a fetch from node {node} begun at {time} saw the end {end}, "
                    f"though that node had told of {known} before"
                )


def c4_what_is_there_is_found(history: History) -> Iterator[str]:
    """A fetch that finds nothing has no record before the end that it names."""
    offsets: dict[RaftGroupId, list[int]] = {}
    starts: dict[RaftGroupId, int] = defaultdict(int)
    for log in history.final:
        # What is in a log in the end was there before, unless it had not been committed yet.
        offsets[log.group] = [record.offset for record in log.records]
        starts[log.group] = max(starts[log.group], log.start)
    for fetch in history.fetches:
        if fetch.end is None or not fetch.is_empty or fetch.group not in offsets:
            continue
        there = offsets[fetch.group]
        first = bisect_left(there, max(fetch.from_offset, starts[fetch.group]))
        if first < len(there) and there[first] < fetch.end:
            yield (
                f"group {fetch.group}: a fetch from node {fetch.node} at {fetch.from_offset} "
                f"found nothing before the end {fetch.end}, and {there[first]} is a record"
            )
