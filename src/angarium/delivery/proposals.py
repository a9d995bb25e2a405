"""Changes on their way into the log, and what each of them is for.

All acknowledgements that come between two steps leave as one change, whoever made them. A machine
at one of its limits refuses a change. If the change is the group's own (a failed attempt, an
expired record), it is proposed again after a while. If it is an acknowledgement, its member gets
the error.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.delivery.blocks import runs
from angarium.delivery.effects import Proposal
from angarium.machine.changes import Ack, Change

if TYPE_CHECKING:
    from angarium.delivery.loans import Loan
    from angarium.ids import Index
    from angarium.machine.outcomes import Refused

CHANGES_MAX: Final = 4_096
"""Changes in one step of a group; the rest follow in the next."""

ACKED_BLOCKS_MAX: Final = 8_192
"""Pieces of acknowledged records in one change; the rest go into another one."""

AGAIN_MICROS: Final = 500_000
"""How long the group's own change waits after it was refused."""


@dataclass(slots=True)
class Acking:
    """Records that their holders acknowledged."""

    pieces: list[tuple[Loan, int]] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    """Of those changes of one step that were not taken; all of them share this list."""


@dataclass(slots=True)
class Vanishing:
    """Records that need no delivery."""

    pieces: list[tuple[int, int]]


@dataclass(slots=True)
class Failing:
    """An attempt that failed."""

    offset: int
    ticket: int
    is_last: bool
    """Whether the promise of a dead letter goes with it."""


@dataclass(slots=True)
class Promising:
    """A dead letter."""

    offset: int
    ticket: int


@dataclass(slots=True)
class Burying:
    """A dead letter that is stored."""

    offset: int
    sequence: int


@dataclass(slots=True)
class Jumping:
    """A group that stands below the partition's start."""


@dataclass(slots=True)
class Stale:
    """Something of a generation that is past; only who waits for an answer still matters."""

    tickets: list[int]


Purpose: TypeAlias = Acking | Vanishing | Failing | Promising | Burying | Jumping | Stale


class Proposals:
    """What was proposed and is not known to be committed."""

    def __init__(self) -> None:
        self._number = 0
        self._acking = Acking()
        self._queue: deque[tuple[Change, Purpose]] = deque()
        self._later: deque[tuple[int, Change, Purpose]] = deque()
        """The group's own changes that were refused, and when to try again, in this order."""
        self._under_way: dict[int, tuple[Change, Purpose]] = {}

    def acknowledge(self, pieces: list[tuple[Loan, int]], ticket: int) -> None:
        """Add to the acknowledgements of this step."""
        self._acking.pieces += pieces
        self._acking.tickets.append(ticket)

    def add(self, change: Change, purpose: Purpose) -> None:
        """Propose one change."""
        self._queue.append((change, purpose))

    def again(self, change: Change, purpose: Purpose, *, now: int) -> None:
        """Propose one change once more, after a while."""
        self._later.append((now + AGAIN_MICROS, change, purpose))

    def drain(self, group: str, generation: Index, *, now: int) -> list[Proposal]:
        """Return what is to be committed now, in order: acknowledgements first."""
        while self._later and self._later[0][0] <= now:
            _, change, purpose = self._later.popleft()
            self._queue.append((change, purpose))
        out: list[Proposal] = []
        acking = self._acking
        # First, so that a record's acknowledgement is in the log before anything else that this
        # step says about its group.
        if acking.tickets:
            self._acking = Acking()
            # Everybody's acknowledgements in one change: what a change costs the log does not
            # depend on how many members said something.
            refusals: list[Refused] = []
            for start in range(0, max(len(acking.pieces), 1), ACKED_BLOCKS_MAX):
                pieces = acking.pieces[start : start + ACKED_BLOCKS_MAX]
                is_last = start + ACKED_BLOCKS_MAX >= len(acking.pieces)
                ranges = runs(_by_block(pieces))
                # Callers wait for the last change: all of them are decided in order.
                tickets = acking.tickets if is_last else []
                purpose = Acking(pieces, tickets, refusals)
                out.append(self._send(Ack(group, generation, ranges), purpose))
        while self._queue and len(out) < CHANGES_MAX:
            out.append(self._send(*self._queue.popleft()))
        return out

    def take(self, number: int) -> tuple[Change, Purpose]:
        """Return what the proposal called `number` was, and forget it."""
        return self._under_way.pop(number)

    def outdate(self) -> list[int]:
        """Forget what has not left yet, but for news of stored letters; return who waited for it.

        What is under way only matters to those who wait for an answer from now on.
        """
        waiting = list(self._acking.tickets)
        self._acking = Acking()
        queued = [*self._queue, *((change, purpose) for _, change, purpose in self._later)]
        self._queue.clear()
        self._later.clear()
        for change, purpose in queued:
            # A letter that is stored is stored, whatever generation it was promised in; not saying
            # so would have it stored again.
            if isinstance(purpose, Burying):
                self._queue.append((change, purpose))
            else:
                waiting += _tickets(purpose)
        for number, (change, purpose) in self._under_way.items():
            if not isinstance(purpose, Burying):
                self._under_way[number] = (change, Stale(_tickets(purpose)))
        return waiting

    @property
    def has_more(self) -> bool:
        """Whether something waits for the next step."""
        return bool(self._queue or self._acking.tickets)

    @property
    def again_at(self) -> int | None:
        """When a refused change is to be proposed again."""
        return self._later[0][0] if self._later else None

    def _send(self, change: Change, purpose: Purpose) -> Proposal:
        self._number += 1
        self._under_way[self._number] = (change, purpose)
        return Proposal(self._number, change)


def _by_block(pieces: list[tuple[Loan, int]]) -> list[tuple[int, int]]:
    """Return what several members acknowledged, block by block, upward."""
    if len(pieces) == 1:
        return [(pieces[0][0].block, pieces[0][1])]
    blocks: dict[int, int] = {}
    for loan, bits in pieces:
        blocks[loan.block] = blocks.get(loan.block, 0) | bits
    return sorted(blocks.items())


def _tickets(purpose: Purpose) -> list[int]:
    match purpose:
        case Acking() | Stale():
            return purpose.tickets
        case Failing() | Promising():
            return [purpose.ticket]
    return []
