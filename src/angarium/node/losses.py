"""Whether a node's disk may be given up now. Pure: who has a full copy, and what is asked for.

Taking a node out, or letting one in that comes back without its data, is harmless while the others
have everything, and the end of records when they do not: two disks replaced in a row, before the
first was filled again, are two of three copies gone. So a request for the next step while a
partition has too few full replicas is refused, with the name of that partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import NodeId

GUARDED_REPLICAS_MIN: Final = 3
"""A group of one or two has no disk to spare: when one is gone, waiting does not help it, and the
other partitions of the node had better be looked after."""


class Copies(NamedTuple):
    """A partition, or the catalog: where its replicas belong, and which of them are full."""

    name: str
    replicas: tuple[NodeId, ...]
    full: frozenset[NodeId]
    """As its leader says; nobody while it has none that answers."""
    has_witness: bool = False
    """Whether there is one vote more, without records: it makes up a majority, and never alone."""

    def counted(self, without: NodeId | None) -> list[NodeId]:
        """Return who of those that vote has what it should have."""
        full = self.full - {without}
        # One that is being replaced by another is as good as that: it still has its vote.
        others = sorted(full - set(self.replicas))[: int(self.has_witness)]
        return sorted(full & set(self.replicas)) + others


def objection(copies: Iterable[Copies], *, without: NodeId | None = None) -> str | None:
    """Say why a disk may not be given up now, or None if it may.

    With `without`, that node's own copies do not count: they are gone, or about to be.
    """
    for one in copies:
        votes = len(one.replicas) + one.has_witness
        majority = votes // 2 + 1
        full = one.counted(without)
        if votes >= GUARDED_REPLICAS_MIN and len(full) < majority:
            where = f" (on node {', '.join(map(str, full))})" if full else ""
            besides = f" without node {without}" if without is not None else ""
            return (
                f"{one.name} has {len(full)} of {votes} full replicas{besides}{where}, "
                f"and {majority} are needed: wait until the others have caught up, and bring back "
                "those that are down with their data; what has lost them for good has to be "
                "recovered, or its topic deleted, first"
            )
    return None
