"""Which records an open transaction holds: nobody else may acknowledge them in one.

A transaction that acknowledges what another one acknowledges, too, would do the work twice. The
partition's leader looks before it takes a stage with acknowledgements: records that are settled,
or belong to a position that was moved since, are refused; records that another open transaction
wants to settle have been delivered again since, so that one has lost them: the caller is told,
and has it ended first, as its home says (`procedure.stage`). What is looked at is the committed
state, so this holds across leaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.errors import GroupFenced, NotFound, OffsetOutOfRange, TransactionPending
from angarium.machine.commands import Commit, Stage
from angarium.machine.outcomes import refused
from angarium.service.transactions.procedure import told

if TYPE_CHECKING:
    from angarium.machine.changes import StagedAck
    from angarium.machine.commands import Transacting
    from angarium.machine.outcomes import Refused
    from angarium.machine.partition import PartitionMachine
    from angarium.wire.operations.transactions import Told


def is_settling(machine: PartitionMachine, command: Transacting) -> bool:
    """Tell whether a command is about settling records here.

    Of these a leader puts one at a time to its log, and judges the next when that is applied.
    """
    if isinstance(command, Stage):
        return bool(command.acks)
    if not isinstance(command, Commit):
        return False
    stages = machine.numbering.transactions.stages
    keys = [(command.name, command.epoch, command.sequence, stage) for stage in command.stages]
    return any(held is not None and held.acks for held in map(stages.get, keys))


def judged(machine: PartitionMachine, command: Stage) -> Told | None:
    """Say why the acknowledgements of a stage cannot be taken now, if so."""
    # A repeated part was judged when it came first. Judging it again could refuse what is staged.
    if not command.acks or _is_repeated(machine, command):
        return None
    # Settled already means that somebody else's transaction, or an acknowledgement, has done the
    # work. Planted as redrive-twice.
    for ack in command.acks:
        no = _refusal(machine, ack)
        if no is not None:
            return told(machine, command.name, no)
    mine = (command.name, command.epoch, command.sequence)
    # Two open transactions with the same records: only one of them may commit, or the work is done
    # twice. Planted as redrive-while-another-does.
    holders = tuple(
        (name, attempt)
        for name, attempt, acks in machine.numbering.transactions.acknowledging()
        if (name, attempt.epoch, attempt.sequence) != mine and _overlap(acks, command.acks)
    )
    if not holders:
        return None
    wait = refused(TransactionPending, "another transaction wants to settle the same records")
    return msgspec.structs.replace(told(machine, command.name, wait), holders=holders)


def _refusal(machine: PartitionMachine, ack: StagedAck) -> Refused | None:
    name, generation, start, end = ack
    group = machine.groups.by_name.get(name)
    if group is None:
        return refused(NotFound, f"there is no group {name}")
    if group.generation != generation:
        return refused(GroupFenced, f"{name} was moved; {generation} is not its generation")
    if not 0 <= start < end <= machine.next_offset:
        return refused(OffsetOutOfRange, f"[{start}, {end}) is not in the partition")
    # All of them must be unsettled. Taking the rest would settle half of what the transaction did.
    if list(group.acked.missing(start, end)) != [(start, end)]:
        return refused(GroupFenced, f"{name} has settled some of [{start}, {end}) before")
    return None


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
