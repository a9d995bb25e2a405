"""Clusters that this one was before a majority of its catalog was lost for good.

What is left of a cluster goes on under another id, with the catalog of one node. Whatever the lost
ones decided last is not in it, so nothing that they may have issued is issued again: a producer
that got an id, or an epoch, of another one would have its records taken for repetitions, and a
partition that got the number of another one would find that one's files. Join tokens may have been
used by then, and are void. Who has not been heard of since counts as draining.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.ids import Epoch, Index, Micros, NodeId, Term
from angarium.machine.catalog.recoveries import RECOVERY_LEVEL
from angarium.machine.outcomes import Done, Refused, refused
from angarium.machine.partition_limits import NAME_CHARACTERS_MAX

if TYPE_CHECKING:
    from angarium.machine.catalog.commands import ClusterRecover
    from angarium.machine.catalog.machine import CatalogMachine

PREDECESSORS_MAX: Final = 16
"""Recoveries of the whole cluster that are remembered. Nodes of earlier ones are strangers."""

PRODUCERS_LEAPT: Final = 1 << 28
NAMED_LEAPT: Final = 1 << 32
IDS_LEAPT: Final = 1 << 20
"""How many ids the lost ones may have issued that nobody here has heard of: of producers, of named
ones, and of topics, partitions, grants and join tokens."""

EPOCHS_LEAPT: Final = 1_000
"""The same for the epochs of a named producer."""


class Predecessor(msgspec.Struct, frozen=True, array_like=True):
    """What the cluster was, and where that ended."""

    cluster: str
    recovered_at: Micros
    node: NodeId
    """Whose catalog it went on with."""
    last_term: Term
    last_index: Index
    by: str
    """Who confirmed it, as the operating system of that node called them."""
    epoch_floor: int
    """No named producer gets a new epoch below since then: the lost ones may have issued it."""


class Predecessors:
    """All that are remembered, the oldest first."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[Predecessor] = []

    @property
    def clusters(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(one.cluster for one in self.rows)

    def next_epoch(self, epoch: Epoch) -> Epoch:
        """Return the epoch that follows `epoch` of a named producer.

        Whoever has the last one that is known here goes on with it: what it sends again is known.
        """
        return Epoch(max(epoch + 1, self._epoch_floor))

    @property
    def _epoch_floor(self) -> int:
        return self.rows[-1].epoch_floor if self.rows else 0

    def recover(self, command: ClusterRecover, machine: CatalogMachine) -> Done | Refused:
        """Be another cluster from here on."""
        if command.cluster == machine.cluster and command.previous in self.clusters:
            return Done(changed=False)
        if command.previous != machine.cluster:
            return refused(PreconditionFailed, f"this is the cluster {machine.cluster}")
        if not 0 < len(command.cluster) <= NAME_CHARACTERS_MAX:
            return refused(InvalidArgument, "a cluster's id is too long or empty")
        if command.cluster in (machine.cluster, *self.clusters):
            return refused(InvalidArgument, f"{command.cluster} was this cluster's id before")
        known_epoch = max((one.epoch for one in machine.named.values()), default=0)
        row = Predecessor(
            cluster=machine.cluster,
            recovered_at=command.time,
            node=command.node,
            last_term=command.last_term,
            last_index=command.last_index,
            by=command.by[:NAME_CHARACTERS_MAX],
            epoch_floor=max(self._epoch_floor, known_epoch) + EPOCHS_LEAPT,
        )
        self.rows = [*self.rows, row][-PREDECESSORS_MAX:]
        machine.cluster = command.cluster
        _leap(machine)
        machine.join_tokens.by_digest = {}
        for one in list(machine.nodes.by_id.values()):
            if one.id != command.node and not one.draining:
                machine.nodes.by_id[one.id] = msgspec.structs.replace(one, draining=True, gone=True)
        # Nobody is in this cluster who does not know this entry: it was begun by this release, and
        # whoever follows or joins is asked for the level.
        machine.nodes.level = max(machine.nodes.level, RECOVERY_LEVEL)
        return Done()


def _leap(machine: CatalogMachine) -> None:
    """Issue nothing that the lost ones may have issued."""
    machine.next_producer += PRODUCERS_LEAPT
    machine.next_named += NAMED_LEAPT
    machine.topics.next_topic += IDS_LEAPT
    machine.topics.next_group += IDS_LEAPT
    machine.access.next_grant += IDS_LEAPT
    machine.join_tokens.next_id += IDS_LEAPT
