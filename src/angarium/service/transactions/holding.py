"""Which records an open transaction holds: nobody else may acknowledge them in one.

A transaction that acknowledges what another one acknowledges, too, would do the work twice. The
partition's leader looks before it takes a stage with acknowledgements: records that are settled,
or belong to a position that was moved since, are refused; records that another open transaction
wants to settle have been delivered again since, so that one has lost them, and is ended first, as
its home says. What is looked at is the committed state, so this holds across leaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import GroupFenced, NotFound
from angarium.machine.outcomes import Refused, refused

if TYPE_CHECKING:
    from angarium.machine.changes import StagedAck
    from angarium.machine.commands import Commit, Stage
    from angarium.machine.partition import PartitionMachine
    from angarium.machine.transactions import Attempt


def is_settling(machine: PartitionMachine, command: Commit) -> bool:
    """Tell whether a commit acknowledges anything here."""
    stages = machine.numbering.transactions.stages
    for stage in command.stages:
        held = stages.get((command.name, command.epoch, command.sequence, stage))
        if held is not None and held.acks:
            return True
    return False


def refusal(machine: PartitionMachine, command: Stage) -> Refused | None:
    """Say why the acknowledgements of a stage cannot be taken, if so."""
    if _is_repeated(machine, command):
        return None
    for name, generation, start, end in command.acks:
        group = machine.groups.by_name.get(name)
        if group is None:
            return refused(NotFound, f"there is no group {name}")
        if group.generation != generation:
            return refused(GroupFenced, f"{name} was moved; {generation} is not its generation")
        if list(group.acked.missing(start, end)) != [(start, end)]:
            return refused(GroupFenced, f"{name} has settled some of [{start}, {end}) before")
    return None


def holders(machine: PartitionMachine, command: Stage) -> list[tuple[str, Attempt]]:
    """Return the open transactions of others that want to settle the same records."""
    if _is_repeated(machine, command):
        return []
    mine = (command.name, command.epoch, command.sequence)
    return [
        (name, attempt)
        for name, attempt, acks in machine.numbering.transactions.acknowledging()
        if (name, attempt.epoch, attempt.sequence) != mine and _overlap(acks, command.acks)
    ]


def _is_repeated(machine: PartitionMachine, command: Stage) -> bool:
    """Tell whether the machine has this part already, and so will only say so."""
    key = (command.name, command.epoch, command.sequence, command.stage)
    held = machine.numbering.transactions.stages.get(key)
    return held is not None and command.part < held.parts


def _overlap(some: tuple[StagedAck, ...], others: tuple[StagedAck, ...]) -> bool:
    return any(
        one[0] == other[0] and one[2] < other[3] and other[2] < one[3]
        for one in some
        for other in others
    )
