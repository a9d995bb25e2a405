"""The plan: every move that is left, and which of them may begin now."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from angarium.machine.catalog.regions import wish_for
from angarium.node.balance.layout import Layout, LocatedPartition, Move
from angarium.node.balance.leaders import even_leaders
from angarium.node.balance.replicas import even_bytes, even_replicas, spread_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.ids import RaftGroupId
    from angarium.machine.catalog import CatalogMachine
    from angarium.machine.catalog.values import Node, Partition

COPIES_MAX: Final = 4
"""Replicas that are copied at a time, in the whole cluster."""

COPIES_TO_ONE_MAX: Final = 2
"""Of these, to one node: its disk has others to serve."""

LEADERS_MAX: Final = 32
"""Partitions that get another preferred leader at a time. Each is a transfer of some
milliseconds."""


def located(machine: CatalogMachine, sizes: Mapping[RaftGroupId, int]) -> list[LocatedPartition]:
    """Return the partitions of a catalog, by group; one whose size is not known counts as empty."""
    topics = machine.topics
    found = []
    for _, one in sorted(topics.partitions.items()):
        wish = wish_for(topics.by_id[one.topic].settings, one)
        found.append(
            LocatedPartition(
                group=one.group,
                replicas=one.target or one.replicas,
                stored_bytes=sizes.get(one.group, 0),
                regions=wish.regions,
                is_homed=wish.is_homed,
                readers=one.readers,
                witness=one.witness or None,
                barred=wish.witness,
                is_fixed=bool(one.target),
            )
        )
    return found


def planned(nodes: Sequence[Node], partitions: Iterable[LocatedPartition]) -> list[Move]:
    """Return the moves after which `nodes` are even, in order; none if they are.

    The same input gives the same moves. A plan that is made anew after some of them goes on where
    this one was: what is on its way counts as arrived.
    """
    layout = Layout(nodes, partitions)
    spread_out(layout, nodes)
    even_replicas(layout)
    even_bytes(layout)
    even_leaders(layout)
    return layout.moves


def next_moves(plan: Sequence[Move], under_way: Iterable[Partition]) -> list[Move]:
    """Return those moves of `plan` that may begin while `under_way` are on their way.

    A few copies at a time, one for a partition. Leaders wait until every copy has arrived: whom a
    partition should prefer is not known before.
    """
    receiving: Counter[int] = Counter()
    copies = leaders = 0
    for one in under_way:
        arriving = set(one.target) - set(one.replicas)
        receiving.update(arriving)
        copies += bool(arriving)
        leaders += not arriving
    begun: list[Move] = []
    seen: set[RaftGroupId] = set()
    is_copying = copies > 0 or any(move.arriving is not None for move in plan)
    for move in plan:
        if move.group in seen:
            continue
        seen.add(move.group)
        to = move.arriving
        if to is None:
            if not is_copying and leaders < LEADERS_MAX:
                leaders += 1
                begun.append(move)
        elif copies < COPIES_MAX and receiving[to] < COPIES_TO_ONE_MAX:
            copies += 1
            receiving[to] += 1
            begun.append(move)
    return begun
