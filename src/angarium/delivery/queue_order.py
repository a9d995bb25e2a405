"""Queue groups: any member, lowest offsets first, and no record waits for another.

Members with credit are served in turn, each with an even share of what there is, so that one that
asks for much does not leave the others idle. All records of one delivery share an attempt number.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from angarium.delivery.blocks import REST, SHIFT, Pool, by_block, offsets
from angarium.delivery.sweep import Sweep

if TYPE_CHECKING:
    from angarium.delivery.loans import Borrower, Loans
    from angarium.delivery.order import Hand
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.machine.cursors import Group

SHARE_MIN: Final = 16
"""Records in a share, at least, if there are that many: deliveries would become too small."""


class QueueOrder:
    """Hands records to any member that has credit."""

    def __init__(
        self,
        group: Group,
        source: RecordSource,
        loans: Loans,
        *,
        retry_times: RetryTimes,
        now: Micros,
    ) -> None:
        self.spent: list[int] = []
        self._group = group
        self._source = source
        self._loans = loans
        self._retry_times = retry_times
        self._sweep = Sweep(group, source, due=now)
        self._ready = Pool()
        """Records below the sweep that may be lent at once."""
        self._waiting: list[tuple[int, int]]
        """A heap of times and offsets; only those that `_waits` confirms are meant."""
        self._waits: dict[int, int]
        # Their letters are owed; whether they are settled is decided when the letter is stored.
        promised = {
            offset
            for offset, intent in group.intents.items()
            if intent.generation == group.generation
        }
        # Records that others swept come to this leader as well, and some of them may expire.
        self._sweep.may_expire = bool(group.attempts)
        # All at once: a new leader may find a hundred thousand of them, and everybody waits.
        self._waits = {
            offset: retry_times.at(offset, now)
            for offset in group.attempts
            if offset not in promised
        }
        self._waiting = [(time, offset) for offset, time in self._waits.items()]
        heapify(self._waiting)
        # Busy: the sweep passes over them, or they would be lent as if nobody had ever tried them.
        for block, bits in by_block(promised.union(self._waits)).items():
            self._sweep.busy.add(block, bits)

    @property
    def absent(self) -> list[tuple[int, int]]:
        """Blocks with records that need no delivery."""
        return self._sweep.absent

    def pick(self, now: Micros, hand: Hand) -> None:
        """Lend what can be lent, to all members in turn."""
        self._sweep.is_unfinished = False
        self._awake(now)
        self._deal(now, hand)

    def _deal(self, now: Micros, hand: Hand) -> None:
        hungry = self._loans.hungry
        while hungry:
            there = self._ready.count + self._source.lendable_end - self._sweep.position
            share = max(SHARE_MIN, -(-there // len(hungry)))
            for _ in range(len(hungry)):
                if not self._serve(next(iter(hungry.values())), share, now, hand):
                    return

    def wake_at(self) -> int | None:
        """When a record that waits may be tried again, or a delayed one is due."""
        if self._sweep.is_unfinished:
            return 0
        times = [self._waiting[0][0]] if self._waiting else []
        if self._sweep.next_due is not None:
            times.append(self._sweep.next_due)
        return min(times, default=None)

    def _serve(self, borrower: Borrower, share: int, now: Micros, hand: Hand) -> bool:
        """Lend one member its share; tell whether there may be more for others."""
        left = min(borrower.free, share)
        while left > 0:
            piece = self._next(left, now)
            if piece is None:
                return False
            block, bits, attempt = piece
            hand(borrower, block, bits, attempt)
            left -= bits.bit_count()
        self._loans.served(borrower)
        return True

    def _next(self, count: int, now: Micros) -> tuple[int, int, int] | None:
        """Return records to lend, of one block and one attempt."""
        while True:
            piece = self._ready.take(count)
            if piece is None:
                break
            block, bits = piece
            # While they waited, a transaction or a trim may have settled them.
            done = bits & self._group.acked.bits(block)
            self._sweep.busy.remove(block, done)
            bits &= ~done
            gone = self._sweep.is_absent(block, bits, now) if bits else 0
            if gone:
                self._sweep.absent.append((block, gone))
                self._sweep.busy.remove(block, gone)
                bits &= ~gone
            if bits:
                attempt, same = self._attempt(block, bits)
                self._ready.add(block, bits & ~same)
                return block, same, attempt
        return self._fresh(count, now)

    def _fresh(self, count: int, now: Micros) -> tuple[int, int, int] | None:
        """Return records to lend that nobody has seen before."""
        piece = self._sweep.next(count, now)
        if piece is None:
            return None
        self._sweep.busy.add(*piece)
        return *piece, 1

    def _attempt(self, block: int, bits: int) -> tuple[int, int]:
        """Return which attempt is next for the lowest of these, and all that share it."""
        attempts = self._group.attempts
        if not attempts:
            return 1, bits
        found, same = 0, 0
        for offset in offsets(block, bits):
            known = attempts.get(offset)
            attempt = 1 if known is None else known.count + 1
            found = found or attempt
            if attempt == found:
                same |= 1 << (offset & REST)
        return found, same

    def _awake(self, now: Micros) -> None:
        """Make ready whatever has waited long enough."""
        waiting, waits = self._waiting, self._waits
        while waiting and waiting[0][0] <= now:
            time, offset = heappop(waiting)
            # An entry of the heap that was superseded by a later failure, or claimed by a member.
            if waits.get(offset) != time:
                continue
            del waits[offset]
            known = self._group.attempts.get(offset)
            # The settings may have been lowered since it failed.
            if known is not None and known.count >= self._group.settings.max_attempts:
                self._spend(offset)
            else:
                self._make_ready(offset)
        for offset in self._sweep.due(now):
            self._sweep.busy.add_offset(offset)
            self._make_ready(offset)

    def _make_ready(self, offset: int) -> None:
        self._ready.add_offset(offset)

    def _spend(self, offset: int) -> None:
        self.spent.append(offset)

    def _wait(self, offset: int, time: int) -> None:
        self._waits[offset] = time
        heappush(self._waiting, (time, offset))

    # --- what becomes of records ---------------------------------------------------------------

    def claim(self, borrower: Borrower, block: int, bits: int, attempt: int) -> int:
        """Return those that nobody has touched, or that wait with this very attempt."""
        del borrower
        busy = self._sweep.busy.bits(block)
        passed = self._sweep.position - (block << SHIFT)
        untouched = bits & ~busy & ~((1 << max(passed, 0)) - 1)
        granted = 0
        for offset in offsets(block, bits & busy):
            known = self._group.attempts.get(offset)
            # A claim from before an attempt that is committed: the member lost it, and the next
            # attempt is somebody else's.
            if attempt != (1 if known is None else known.count + 1):
                continue
            bit = 1 << (offset & REST)
            if self._waits.pop(offset, None) is not None:
                granted |= bit
            elif self._ready.bits(block) & bit:
                self._ready.remove(block, bit)
                granted |= bit
        # Above the sweep nobody has been lent anything by this leader, so a first attempt can only
        # be the one that the earlier leader made.
        if attempt == 1:
            granted |= untouched
        self._sweep.busy.add(block, granted)
        self._sweep.may_expire |= granted != 0
        return granted

    def given_back(self, block: int, bits: int) -> None:
        """Make records ready that came back untried."""
        self._ready.add(block, bits)

    def settling(self, block: int, bits: int) -> None:
        """Nothing changes: they are busy."""

    def reopened(self, block: int, bits: int) -> None:
        """Nothing changes: they are busy."""

    def ended(self, block: int, bits: int) -> None:
        """Forget records that are acknowledged."""
        self._sweep.busy.remove(block, bits)

    def failing(self, offset: int) -> None:
        """Nothing changes: it is busy."""

    def failed(self, offset: int, now: Micros) -> None:
        """Let the record wait for its next attempt."""
        if offset in self._group.attempts:
            self._wait(offset, self._retry_times.at(offset, now))

    def promised(self, offset: int) -> None:
        """Nothing changes: it stays busy until its letter is stored."""

    def joined(self, borrower: Borrower) -> None:
        """Nothing changes."""

    def left(self, borrower: Borrower) -> None:
        """Nothing changes."""

    def stalled(self, borrower: Borrower) -> None:
        """Nothing changes."""
