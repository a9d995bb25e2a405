"""A simulated leader's side of transactions: as `service.transactions.participants`, without waits.

Where the real one waits for its turn, whoever asks is sent away and comes again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from angarium.errors import AngariumError, TransactionPending
from angarium.ids import Term
from angarium.machine.commands import Stage
from angarium.modes import DeliveryMode
from angarium.replica.acks import Published
from angarium.service.transactions import holding
from angarium.service.transactions.procedure import told

if TYPE_CHECKING:
    from angarium.ids import Micros, RaftGroupId
    from angarium.machine.commands import Transacting
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.wire.operations.transactions import Told


class Reply(Protocol):
    """Takes what became of a command, and what the machine knows of its name."""

    def __call__(self, answer: Published | AngariumError, known: Told | None = None) -> None: ...


class Settling:
    """The groups of one node in which a command that settles records is under way."""

    def __init__(self) -> None:
        self._groups: set[RaftGroupId] = set()

    def submit(
        self,
        group: RaftGroupId,
        replica: PartitionReplica,
        command: Transacting,
        *,
        now: Micros,
        reply: Reply,
    ) -> None:
        """Put a command to the replica, of those that settle one at a time."""
        machine = replica.partition.machine
        settles = replica.may_serve and holding.is_settling(machine, command)
        if settles:
            if group in self._groups:
                reply(TransactionPending("one that settles records is under way"))
                return
            no = holding.judged(machine, command) if isinstance(command, Stage) else None
            if no is not None:
                reply(Published(DeliveryMode.CONSISTENT, Term(0), (no.outcome,)), no)
                return
            self._groups.add(group)

        def answered(answer: Published | AngariumError) -> None:
            if settles:
                self._groups.discard(group)
            if isinstance(answer, AngariumError):
                reply(answer)
            else:
                reply(answer, told(machine, command.name, answer.outcomes[0]))

        replica.partition.submit(command, now=now, reply=answered)
        replica.poke()
