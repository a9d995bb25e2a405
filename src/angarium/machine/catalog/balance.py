"""Whether the cluster is evening out what its nodes hold, and how fast.

Which moves are left is not here: whoever leads the catalog finds that out anew from where
partitions are, so a run goes on under the next leader as if nothing had happened. What has begun is
a partition's `target`, as with every move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import InvalidArgument
from angarium.ids import Micros
from angarium.machine.outcomes import Refused, refused

if TYPE_CHECKING:
    from angarium.machine.catalog.commands import BalanceBegin, BalanceChoose, BalanceEnd
    from angarium.machine.catalog.nodes import Nodes
    from angarium.machine.catalog.topics import Topics
    from angarium.machine.catalog.values import Partition

BALANCE_LEVEL: Final = 5
"""The feature level from which on the catalog knows of it."""

BYTES_PER_S_MIN: Final = 64 << 10
"""The slowest pace. Slower copies would be given up for lost before they are through."""


class Balance(msgspec.Struct, frozen=True, array_like=True):
    """A run that goes on, if any does, and what is chosen for all of them."""

    begun_at: Micros = Micros(0)
    """When it began, by which it is known; 0 while there is none."""
    bytes_per_s: int = 0
    """What all copies together may take; 0: as fast as replicas copy otherwise."""
    is_automatic: bool = False
    """Whether a run begins by itself when a node has come, gone or been drained."""

    @property
    def is_running(self) -> bool:
        """Whether there is more to move, as far as anybody knows."""
        return self.begun_at > 0


def begun(balance: Balance, command: BalanceBegin) -> Balance | Refused:
    """Begin a run; one that goes on gets another pace."""
    if command.bytes_per_s and command.bytes_per_s < BYTES_PER_S_MIN:
        return refused(
            InvalidArgument,
            f"copies need at least {BYTES_PER_S_MIN} bytes a second, {command.bytes_per_s} are too "
            "few",
        )
    return msgspec.structs.replace(
        balance,
        begun_at=balance.begun_at or Micros(max(command.time, 1)),
        bytes_per_s=command.bytes_per_s,
    )


def chosen(balance: Balance, command: BalanceChoose) -> Balance:
    """Let runs begin by themselves, or only when somebody says so."""
    return msgspec.structs.replace(balance, is_automatic=command.is_automatic)


def ended(balance: Balance, command: BalanceEnd, nodes: Nodes, topics: Topics) -> Balance:
    """End a run. If it was called off, what is on its way because of it goes back."""
    # The leader that found nothing left to do may have looked before somebody began again.
    if not balance.is_running or command.begun_at not in {0, balance.begun_at}:
        return balance
    if command.is_called_off:
        for partition in list(topics.partitions.values()):
            if is_optional(partition, nodes):
                topics.stay(partition, nodes.placeable())
    return msgspec.structs.replace(balance, begun_at=Micros(0))


def begun_by_itself(balance: Balance, nodes: Nodes, time: Micros) -> Balance:
    """Begin a run because nodes are others now, if that is wanted; one that goes on goes on."""
    if not balance.is_automatic or balance.is_running or nodes.level < BALANCE_LEVEL:
        return balance
    return msgspec.structs.replace(balance, begun_at=Micros(max(time, 1)))


def is_optional(partition: Partition, nodes: Nodes) -> bool:
    """Tell whether a partition moves only to make nodes more even.

    Others move because a node is drained, or because they are to have more or fewer replicas.
    """
    if not partition.target or len(partition.target) != len(partition.replicas):
        return False
    leaving = set(partition.replicas) - set(partition.target)
    known = (nodes.by_id.get(one) for one in leaving)
    return all(one is not None and not one.draining for one in known)
