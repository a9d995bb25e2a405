"""Who holds which records, and until when.

What one member holds of one block is one `Loan`, whatever it was lent in: giving five hundred
records costs one object, settling one of them costs one bit. Leases end on ticks,
so no record needs a timer or an entry in a heap. A lease may last up to one tick longer than
promised, and never shorter.

An offset is on loan to one member at most: the caller of `lend` makes sure that it is free.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from angarium.delivery.blocks import SHIFT, lowest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Micros

TICK_MICROS: Final = 50_000
"""How exactly leases end."""


PORTIONS: Final = 4
PORTIONS_FROM: Final = 32
"""A member with a credit of at least `PORTIONS_FROM` is lent more when one part in `PORTIONS` of it
is free; one with less, whenever there is room."""


class Borrower:
    """A member that is attached."""

    __slots__ = ("credit", "is_gone", "loans", "name", "on_loan")

    def __init__(self, name: str, credit: int) -> None:
        self.name = name
        self.credit = credit
        """Records that it may hold at a time."""
        self.on_loan = 0
        """Records that it holds."""
        self.loans: dict[int, Loan] = {}
        self.is_gone = False
        """True once it has been detached: its loans only wait to be taken back."""

    @property
    def free(self) -> int:
        """How many more records it may be lent."""
        return self.credit - self.on_loan


class Loan:
    """What one member holds of one block."""

    __slots__ = ("block", "borrower", "open", "settling", "timed", "until")

    def __init__(self, block: int, borrower: Borrower) -> None:
        self.block = block
        self.borrower = borrower
        self.open = 0
        """Records on loan."""
        self.settling = 0
        """Records whose acknowledgement is being committed; they do not count as on loan."""
        self.until: dict[int, int] = {}
        """Bits by the tick at which their lease ends; some may have been settled since."""
        self.timed = 0
        """Every bit that is in `until`."""


class Loans:
    """Everything that is on loan in one group."""

    def __init__(self) -> None:
        self.borrowers: dict[str, Borrower] = {}
        """Attached members, in the order in which they came."""
        self.hungry: dict[str, Borrower] = {}
        """Members that have room for a portion; the one served last stands last."""
        self.on_loan = 0
        self._by_block: dict[int, dict[Borrower, Loan]] = {}
        self._ticks: list[int] = []
        self._at: dict[int, list[Loan]] = {}

    # --- members -----------------------------------------------------------------------------

    def join(self, name: str, credit: int) -> Borrower:
        """Let a member borrow."""
        borrower = Borrower(name, credit)
        self.borrowers[name] = borrower
        self.appetite(borrower)
        return borrower

    def leave(self, borrower: Borrower) -> None:
        """Let a member borrow no more; what it holds is still its loan."""
        del self.borrowers[borrower.name]
        self.hungry.pop(borrower.name, None)
        borrower.is_gone = True

    def appetite(self, borrower: Borrower) -> None:
        """Note whether a member may be lent more: once it has room for a portion, until it is full.

        A member that settles a little and is lent that little again would get ever smaller
        deliveries, each of which costs as much as a large one.
        """
        free = borrower.credit - borrower.on_loan
        if free <= 0 or borrower.is_gone:
            self.hungry.pop(borrower.name, None)
        elif borrower.credit < PORTIONS_FROM or free * PORTIONS >= borrower.credit:
            self.hungry.setdefault(borrower.name, borrower)

    def served(self, borrower: Borrower) -> None:
        """Put a member that was lent something behind the others."""
        if self.hungry.pop(borrower.name, None) is not None:
            self.hungry[borrower.name] = borrower

    # --- lending -----------------------------------------------------------------------------

    def lend(self, borrower: Borrower, block: int, bits: int, deadline: int) -> None:
        """Lend records that are free until `deadline`."""
        loan = borrower.loans.get(block)
        if loan is None:
            loan = borrower.loans[block] = Loan(block, borrower)
            self._by_block.setdefault(block, {})[borrower] = loan
        loan.open |= bits
        self._until(loan, bits, deadline)
        self._count(borrower, bits.bit_count())

    def extend(self, loan: Loan, bits: int, deadline: int) -> None:
        """Let the lease of records on loan end at `deadline`."""
        self._until(loan, bits, deadline)

    def expire(self, loan: Loan, bits: int, now: Micros) -> None:
        """Let the lease of records on loan have ended, so that `overdue` returns them next."""
        # Rounded down, so that the next `overdue` with the same `now` finds it.
        self._until(loan, bits, now // TICK_MICROS * TICK_MICROS)

    def settle(self, loan: Loan, bits: int) -> None:
        """Keep records on loan apart while their acknowledgement is being committed."""
        loan.open &= ~bits
        # Still held against everybody else: if the log refuses the acknowledgement, the record is
        # on loan again and must not have been lent meanwhile.
        loan.settling |= bits
        self._count(loan.borrower, -bits.bit_count())

    def settled(self, loan: Loan, bits: int) -> None:
        """Forget records whose acknowledgement is committed."""
        loan.settling &= ~bits
        self._forget_if_empty(loan)

    def reopen(self, loan: Loan, bits: int, deadline: int) -> None:
        """Put records on loan again whose acknowledgement was refused."""
        loan.settling &= ~bits
        loan.open |= bits
        self._until(loan, bits, deadline)
        self._count(loan.borrower, bits.bit_count())

    def take_back(self, loan: Loan, bits: int) -> None:
        """End the loan of some records."""
        loan.open &= ~bits
        self._count(loan.borrower, -bits.bit_count())
        self._forget_if_empty(loan)

    # --- asking ------------------------------------------------------------------------------

    def held(self, block: int) -> int:
        """Return which records of a block somebody holds, or is settling."""
        bits = 0
        for loan in self._by_block.get(block, {}).values():
            # Both count as held. A record that is being settled is nobody's to lend.
            bits |= loan.open | loan.settling
        return bits

    def held_from(self, offset: int) -> Iterator[tuple[Loan, int]]:
        """Yield everything on loan at or above `offset`."""
        first, rest = offset >> SHIFT, offset & ((1 << SHIFT) - 1)
        for block in sorted(one for one in self._by_block if one >= first):
            for loan in list(self._by_block[block].values()):
                bits = loan.open >> rest << rest if block == first else loan.open
                if bits:
                    yield loan, bits

    # --- time --------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> int | None:
        """When the next lease may end; none that was settled ends, so this may be early."""
        return self._ticks[0] * TICK_MICROS if self._ticks else None

    def overdue(self, now: Micros, *, limit: int) -> list[tuple[Loan, int]]:
        """Return records whose lease has ended, `limit` at most; each is returned once."""
        found: list[tuple[Loan, int]] = []
        while self._ticks and self._ticks[0] * TICK_MICROS <= now and limit > 0:
            tick = self._ticks[0]
            waiting = self._at[tick]
            while waiting and limit > 0:
                loan = waiting[-1]
                # Settled records stay in `until`, which costs less than taking them out one by
                # one; they are sorted out here. Planted as leases-never-end.
                due = loan.until.pop(tick, 0) & loan.open
                bits = lowest(due, limit)
                if bits == due:
                    waiting.pop()
                else:
                    loan.until[tick] = due & ~bits
                if bits:
                    found.append((loan, bits))
                    limit -= bits.bit_count()
            if not waiting:
                heappop(self._ticks)
                del self._at[tick]
        return found

    def _until(self, loan: Loan, bits: int, deadline: int) -> None:
        if loan.timed & bits:
            # Lent before, or extended: only the new end counts.
            for tick, due in loan.until.items():
                loan.until[tick] = due & ~bits
        loan.timed |= bits
        # Rounded up: a lease may last a little longer than promised, never shorter.
        tick = -(-deadline // TICK_MICROS)
        known = loan.until.get(tick)
        if known is None:
            at = self._at.get(tick)
            if at is None:
                at = self._at[tick] = []
                heappush(self._ticks, tick)
            at.append(loan)
        loan.until[tick] = (known or 0) | bits

    def _count(self, borrower: Borrower, records: int) -> None:
        borrower.on_loan += records
        self.on_loan += records
        self.appetite(borrower)

    def _forget_if_empty(self, loan: Loan) -> None:
        if loan.open or loan.settling:
            return
        loan.borrower.loans.pop(loan.block, None)
        peers = self._by_block.get(loan.block)
        if peers is not None and peers.get(loan.borrower) is loan:
            del peers[loan.borrower]
            if not peers:
                del self._by_block[loan.block]
