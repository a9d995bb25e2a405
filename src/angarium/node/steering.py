"""The next step from one membership to another. Pure: what is, what should be, what to propose."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from angarium.machine.catalog.placement import host_of
from angarium.raft import Change, ChangeKind, ConfChange

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from angarium.ids import Index, ReplicaId
    from angarium.machine.catalog.values import Node
    from angarium.raft.messages import ConfState

CAUGHT_UP_ENTRIES = 64
"""A learner this close to the end of the log may vote."""


def electors(nodes: Iterable[Node]) -> list[Node]:
    """Return all nodes, those first that are to vote on the catalog.

    The oldest node of every host comes before the second of any, so that losing one machine does
    not cost a majority as long as there are machines enough. Draining nodes come last.
    """
    seen: Counter[str] = Counter()
    ranked = []
    for node in sorted(nodes, key=lambda one: (one.draining, one.id)):
        ranked.append((node.draining, seen[host_of(node)], node.id, node))
        seen[host_of(node)] += 1
    return [node for *_, node in sorted(ranked, key=lambda one: one[:3])]


def next_change(
    state: ConfState,
    *,
    voters: Collection[ReplicaId],
    learners: Collection[ReplicaId],
    last_index: Index,
    match: Callable[[ReplicaId], Index | None],
) -> ConfChange | None:
    """Return what to propose next so that `voters` vote and `learners` listen, or None.

    Newcomers listen first. Nobody stops voting before whoever takes the place has caught up.
    """
    if state.voters_outgoing:
        return None  # a joint change is under way and ends by itself
    present = {*state.voters, *state.learners}
    newcomers = sorted({*voters, *learners} - present)
    if newcomers:
        return ConfChange((Change(ChangeKind.ADD_LEARNER, newcomers[0]),))

    def is_ready(replica: ReplicaId) -> bool:
        known = match(replica)
        return known is not None and known > 0 and known + CAUGHT_UP_ENTRIES >= last_index

    promoted = [one for one in state.learners if one in voters and is_ready(one)]
    demoted = [one for one in state.voters if one in learners]
    leaving = [one for one in sorted(present) if one not in voters and one not in learners]
    missing = len(voters) - len([one for one in state.voters if one in voters]) - len(promoted)
    if missing > 0:
        # Whoever votes now is needed until the newcomers have caught up.
        demoted = []
        leaving = [one for one in leaving if one in state.learners]
    changes = (
        *(Change(ChangeKind.ADD_VOTER, one) for one in promoted),
        *(Change(ChangeKind.ADD_LEARNER, one) for one in demoted),
        *(Change(ChangeKind.REMOVE, one) for one in leaving),
    )
    return ConfChange(changes) if changes else None
