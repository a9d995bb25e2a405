"""Changes of a partition's groups on their way into its log.

Whatever comes while an entry is under way is gathered and makes the next one, so there is never
more than one entry of this kind waiting for its sync, however many groups settle at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from angarium.errors import AngariumError, OutcomeUnknown
from angarium.lending.lending_limits import CHANGES_MAX, CHANGES_WAITING_MAX
from angarium.machine.changes import RETRY_DELAY_LEVEL, Retry
from angarium.machine.commands import Cursors
from angarium.machine.outcomes import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.lending.ports import Surroundings
    from angarium.machine.changes import Change
    from angarium.machine.outcomes import Outcome
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica

Fate: TypeAlias = "Callable[[Outcome | AngariumError], None]"
"""Told once what became of a change: the machine's outcome when it is applied, or why it is not
known to be."""


class ChangeQueue:
    """The changes of one partition this node leads."""

    def __init__(self, around: Surroundings, replica: PartitionReplica) -> None:
        self._around = around
        self._replica = replica
        self._waiting: deque[tuple[Change, Fate]] = deque()
        self._under_way: list[Fate] | None = None
        """Whom to tell about the entry that has been proposed."""
        self._is_called = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """True when changes that may be refused have to be."""
        return len(self._waiting) >= CHANGES_WAITING_MAX

    def submit(self, change: Change, fate: Fate) -> None:
        """Have a change committed, with everything else that comes in this moment."""
        self._waiting.append((change, fate))
        if not self._is_called and self._under_way is None:
            self._is_called = True
            self._around.soon(self._propose)

    def abandon(self, error: AngariumError) -> None:
        """Fail whatever waits: this node leads no more, or stops."""
        waiting, self._waiting = self._waiting, deque()
        under_way, self._under_way = self._under_way, None
        for fate in under_way or ():
            fate(OutcomeUnknown("leadership was lost before it was known to be committed"))
        for _, fate in waiting:
            fate(error)

    def _propose(self) -> None:
        self._is_called = False
        if self._under_way is not None or not self._waiting:
            return
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(len(waiting), CHANGES_MAX))]
        command = Cursors(changes=tuple(self._written(change) for change, _ in taken))
        fates = self._under_way = [fate for _, fate in taken]

        def reply(answer: Published | AngariumError) -> None:
            self._applied(fates, answer)

        self._replica.partition.submit(command, now=self._around.now(), reply=reply)
        self._replica.poke()
        self._around.carry_on()

    def _written(self, change: Change) -> Change:
        """Return the change as every replica of the cluster understands it."""
        if isinstance(change, Retry) and self._around.level < RETRY_DELAY_LEVEL:
            return replace(change, delay=None)
        return change

    def _applied(self, fates: list[Fate], answer: Published | AngariumError) -> None:
        # Called from the midst of applying: what follows waits until that is done. While the node
        # stops it is called from a thread, and those who waited have been told by then.
        if self._under_way is fates:
            self._around.soon(self._tell, fates, answer)

    def _tell(self, fates: list[Fate], answer: Published | AngariumError) -> None:
        if self._under_way is not fates:
            return
        self._under_way = None
        if isinstance(answer, AngariumError):
            for fate in fates:
                fate(answer)
        else:
            outcomes = answer.outcomes
            if len(outcomes) != len(fates):
                # The entry as a whole was refused before it was proposed: one verdict for all.
                outcomes = (outcomes[0] if outcomes else Refused(AngariumError.code),) * len(fates)
            for fate, outcome in zip(fates, outcomes, strict=True):
                fate(outcome)
        self._propose()
