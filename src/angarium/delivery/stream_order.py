"""Stream groups: one member at a time, every record in order.

Whatever comes back, untried or failed, rewinds the group: everything behind it that is on loan is
taken back and comes again after it. So a member sees a record only when all before it have been
handled, or are at least in its own hands.

Hand-over: a member that is preferred gets the partition when the old owner has nothing on loan any
more (it settled, was taken back, or its lease ended). Nobody else is lent anything in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.delivery.blocks import SHIFT, blocks, first
from angarium.delivery.source import EVERYTHING_IS_DUE
from angarium.delivery.sweep import Sweep
from angarium.kinds import Poison

if TYPE_CHECKING:
    from angarium.delivery.loans import Borrower, Loans
    from angarium.delivery.order import Hand
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.machine.cursors import Group


class StreamOrder:
    """Hands records to one owner, upward."""

    def __init__(
        self,
        group: Group,
        source: RecordSource,
        loans: Loans,
        *,
        retry_times: RetryTimes,
        now: Micros,
    ) -> None:
        del now  # in a stream a delayed record waits for nothing but its turn
        self.spent: list[int] = []
        self.preferred = ""
        """Who should have the partition, by the group's assignment; empty: nobody in particular."""
        self.owner: Borrower | None = None
        self.is_stopped = False
        """True while a record whose attempts are used up holds everything, as its group wants."""
        self._group = group
        self._source = source
        self._loans = loans
        self._retry_times = retry_times
        self._sweep = Sweep(group, source, due=EVERYTHING_IS_DUE)
        self._failing: set[int] = set()
        self._retry_at: int | None = None
        self._has_stalled = False
        """Whether a lease of the owner has ended."""
        for offset, intent in group.intents.items():
            if intent.generation == group.generation:
                self._sweep.busy.add_offset(offset)

    @property
    def absent(self) -> list[tuple[int, int]]:
        """Blocks with records that need no delivery."""
        return self._sweep.absent

    def pick(self, now: Micros, hand: Hand) -> None:
        """Lend the owner what comes next."""
        self._sweep.is_unfinished = False
        self._retry_at = None
        self.is_stopped = False
        self._choose_owner()
        owner = self.owner
        # An owner that is to make way is lent nothing more. The stream is handed over when it
        # holds nothing, so that two members never work on one partition at a time.
        if owner is None or owner.name != self._heir(owner) or owner.name not in self._loans.hungry:
            return
        # Upward without gaps: everything below the position is settled, on loan, or being settled.
        while owner.free > 0:
            barrier = self._barrier()
            piece = self._sweep.next(owner.free, now, stop=barrier)
            if piece is not None:
                hand(owner, *piece, 1)
                continue
            # The record that failed is at the head. Nothing behind it is lent before it has
            # succeeded or is a dead letter: that is what a stream promises.
            if barrier is None or self._sweep.position < barrier or not self._may_try(barrier, now):
                return
            # A new leader has yet to find out that the gate before it is open.
            if barrier >= self._source.lendable_end:
                return
            piece = self._sweep.next(1, now, stop=barrier + 1)
            if piece is not None:
                hand(owner, *piece, self._group.attempts[barrier].count + 1)

    def wake_at(self) -> int | None:
        """When the record that failed may be tried again."""
        return 0 if self._sweep.is_unfinished else self._retry_at

    def _barrier(self) -> int | None:
        """Return the next record that is not simply to be lent."""
        position = self._sweep.position
        # From the committed state, so that a new leader stops at the same record as the one before
        # it.
        ahead = [one for one in self._group.attempts if one >= position]
        ahead += [one for one in self._failing if one >= position]
        return min((one for one in ahead if one not in self._sweep.busy), default=None)

    def _may_try(self, offset: int, now: Micros) -> bool:
        """Tell whether the failed record at the head may be lent again now."""
        known = self._group.attempts.get(offset)
        if offset in self._failing or known is None:
            return False
        settings = self._group.settings
        if known.count >= settings.max_attempts and settings.poison is not Poison.RETRY:
            if settings.poison is Poison.DEAD_LETTER:
                self._failing.add(offset)
                self.spent.append(offset)
            else:
                self.is_stopped = True
            return False
        retry_at = self._retry_times.at(offset, now)
        if retry_at > now:
            self._retry_at = retry_at
            return False
        return True

    # --- who owns the partition ----------------------------------------------------------------

    def _heir(self, owner: Borrower) -> str:
        """Return who should own the partition: the preferred one, if it is here, or who does.

        An owner whose lease has ended makes way for anybody else.
        """
        members = self._loans.borrowers
        if self.preferred in members:
            return self.preferred
        if self._has_stalled:
            return next((name for name in members if name != owner.name), owner.name)
        return owner.name

    def _choose_owner(self) -> None:
        members, owner = self._loans.borrowers, self.owner
        if owner is None:
            self.owner = members.get(self.preferred) or next(iter(members.values()), None)
        # Not before: what the old owner still holds comes before anything the new one would get.
        elif not owner.on_loan and owner.name != self._heir(owner):
            self.owner = members[self._heir(owner)]
        if self.owner is not owner:
            self._has_stalled = False

    def goes_on_behind(self, borrower: Borrower, offset: int) -> bool:
        """Tell whether the next records are this member's, and lie behind this one."""
        return self.owner is borrower and self._sweep.position > offset

    def joined(self, borrower: Borrower) -> None:
        """Nothing changes before the next step."""

    def left(self, borrower: Borrower) -> None:
        """Let somebody else own the partition."""
        if self.owner is borrower:
            self.owner = None

    def stalled(self, borrower: Borrower) -> None:
        """Let somebody else own the partition, if somebody else is there."""
        if self.owner is borrower:
            self._has_stalled = True
            # Else the partition would go back at once to the member that does not get on with it.
            if self.preferred == borrower.name:
                self.preferred = ""

    # --- what becomes of records ---------------------------------------------------------------

    def claim(self, borrower: Borrower, block: int, bits: int, attempt: int) -> int:
        """Return those that follow on what the owner holds, without a gap.

        The member that claims first, and holds what comes next, was the owner and is it again.
        """
        if self.owner not in (None, borrower):
            return 0
        granted = 0
        for start, end in self._untouched(block, bits):
            expected = next(iter(self._group.acked.missing(self._sweep.position, end)), (end, end))
            # Something before it is missing, so taking this one would break the order.
            if expected[0] != start or start in self._failing or start in self._sweep.busy:
                break
            for offset in range(start, end):
                known = self._group.attempts.get(offset)
                if attempt != (1 if known is None else known.count + 1):
                    return granted
                granted |= next(blocks(offset, offset + 1))[1]
                self._sweep.position = offset + 1
                self.owner = borrower
        return granted

    def _untouched(self, block: int, bits: int) -> list[tuple[int, int]]:
        """Return the ranges of these records that nobody has been lent."""
        base = block << SHIFT
        bits &= ~(self._group.acked.bits(block) | self._loans.held(block))
        bits &= ~((1 << max(self._sweep.position - base, 0)) - 1)
        found = []
        while bits:
            start = first(block, bits)
            ones = bits >> (start - base)
            length = (~ones & (ones + 1)).bit_length() - 1
            found.append((start, start + length))
            bits = ones >> length << (start - base + length)
        return found

    def given_back(self, block: int, bits: int) -> None:
        """Go on from there."""
        self._rewind(first(block, bits))

    def settling(self, block: int, bits: int) -> None:
        """Pass over these if the group is rewound."""
        self._sweep.busy.add(block, bits)

    def reopened(self, block: int, bits: int) -> None:
        """Lend these again if the group is rewound."""
        self._sweep.busy.remove(block, bits)

    def ended(self, block: int, bits: int) -> None:
        """Forget records that are acknowledged."""
        self._sweep.busy.remove(block, bits)

    def failing(self, offset: int) -> None:
        """Go no further than this record until its failure is committed."""
        self._failing.add(offset)
        self._rewind(offset)

    def failed(self, offset: int, now: Micros) -> None:
        """Try it again when its time comes."""
        # It may have been settled since, by a transaction or a trim that was applied in between.
        if offset in self._retry_times.group.attempts:
            self._retry_times.at(offset, now)
        self._failing.discard(offset)

    def promised(self, offset: int) -> None:
        """Pass over a record whose dead letter is promised."""
        self._failing.discard(offset)
        # The letter is owed by the log from here on, and the stream may go on behind it.
        self._sweep.busy.add_offset(offset)

    def _rewind(self, offset: int) -> None:
        self._sweep.position = min(self._sweep.position, offset)
