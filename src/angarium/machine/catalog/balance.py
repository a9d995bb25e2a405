"""Whether the cluster is evening out what its nodes hold, and how fast.

Which moves are left is not here: whoever leads the catalog finds that out anew from where
partitions are, so a run goes on under the next leader as if nothing had happened. What has begun is
a partition's `target`, as with every move.

Nor does it begin here by itself: the catalog notes that other nodes may hold replicas than before,
and its leader begins when all has been calm for a while (`node.balance.automatic`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import InvalidArgument
from angarium.ids import Micros
from angarium.machine.outcomes import Refused, refused

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.machine.catalog.commands import BalanceBegin, BalanceChoose, BalanceEnd
    from angarium.machine.catalog.nodes import Nodes
    from angarium.machine.catalog.topics import Topics
    from angarium.machine.catalog.values import Labels, Partition

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
    """Whether a run begins by itself when a node has come, come back or been drained."""
    changed_at: Micros = Micros(0)
    """When other nodes than before began to count, for which no run has begun yet; 0: none has to
    begin by itself."""
    is_by_itself: bool = False
    """Whether nobody asked for the run that goes on."""

    @property
    def is_running(self) -> bool:
        """Whether there is more to move, as far as anybody knows."""
        return self.begun_at > 0


def begun(balance: Balance, command: BalanceBegin) -> Balance | Refused:
    """Begin a run; one that goes on gets another pace.

    What begins by itself does so for the change that its leader saw, and never beside another run:
    somebody may have chosen otherwise, or begun one, while the leader looked.
    """
    if command.changed_at and (
        not balance.is_automatic or balance.is_running or command.changed_at != balance.changed_at
    ):
        return balance
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
        changed_at=Micros(0),
        is_by_itself=bool(command.changed_at),
    )


def chosen(balance: Balance, command: BalanceChoose) -> Balance:
    """Let runs begin by themselves, or only when somebody says so."""
    changed_at = balance.changed_at if command.is_automatic else Micros(0)
    return msgspec.structs.replace(
        balance, is_automatic=command.is_automatic, changed_at=changed_at
    )


def ended(balance: Balance, command: BalanceEnd, nodes: Nodes, topics: Topics) -> Balance:
    """End a run. If it was called off, what is on its way because of it goes back.

    Called off, it does not begin again before nodes change once more. A change that came while it
    went on is none of those that are done with: its leader may have looked before.
    """
    # The leader that found nothing left to do may have looked before somebody began again.
    if not balance.is_running or command.begun_at not in {0, balance.begun_at}:
        return balance
    if command.is_called_off:
        for partition in list(topics.partitions.values()):
            if is_optional(partition, nodes):
                topics.stay(partition, nodes.placeable())
    return msgspec.structs.replace(
        balance,
        begun_at=Micros(0),
        changed_at=Micros(0) if command.is_called_off else balance.changed_at,
        is_by_itself=False,
    )


def sites(nodes: Nodes) -> list[tuple[NodeId, Labels]]:
    """Return which nodes may hold replicas, and where they are: a change of that is a reason.

    A node that comes back under its id is none, whether it has another address, a new release or
    an empty disk: its replicas are its own still.
    """
    return [(one.id, one.labels) for one in nodes.placeable()]


def changed(balance: Balance, nodes: Nodes, time: Micros) -> Balance:
    """Note that other nodes may hold replicas now, if runs begin by themselves."""
    if not balance.is_automatic or nodes.level < BALANCE_LEVEL:
        return balance
    # Each change is told from the one before, also when a leader's clock stands still.
    return msgspec.structs.replace(balance, changed_at=Micros(max(time, balance.changed_at + 1)))


def is_paced(balance: Balance, partition: Partition, nodes: Nodes) -> bool:
    """Tell whether the pace of a run counts for what a partition copies.

    One that somebody has chosen counts for every move while the run goes on. That of a run which
    began by itself does not hold up those that somebody waits for, as drains. What makes a lost
    replica good is no move.
    """
    if balance.is_running and not balance.is_by_itself:
        return bool(partition.target)
    return is_optional(partition, nodes)


def is_optional(partition: Partition, nodes: Nodes) -> bool:
    """Tell whether a partition moves only to make nodes more even.

    Others move because a node is drained, or because they are to have more or fewer replicas.
    """
    if not partition.target or len(partition.target) != len(partition.replicas):
        return False
    leaving = set(partition.replicas) - set(partition.target)
    known = (nodes.by_id.get(one) for one in leaving)
    return all(one is not None and not one.draining for one in known)
