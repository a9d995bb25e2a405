"""What is left to do for a topic's new layout to be in force, seen from one of its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.machine.catalog.commands import Fenced
from angarium.machine.commands import Fence

if TYPE_CHECKING:
    from angarium.machine.catalog.values import Partition, Topic


def next_step(topic: Topic, partition: Partition, *, fenced: int) -> Fence | Fenced | None:
    """Return what the leader of `partition` has to have committed next, there or in the catalog.

    `fenced` is the layout of the last fence that is committed there: what only its leader's log has
    may be gone with the leader. Planted as fence-told-before-it-is-committed.
    """
    if partition.number not in topic.unfenced:
        return None
    wanted = len(topic.layouts) - 1
    if fenced < wanted:
        return Fence(layout=wanted)
    return Fenced(group=partition.group, layout=wanted)
