"""The books of one group: what is on loan, what is under way into the log, what to tell whom.

Every move a record can make is one method here, so that loans, order and proposals never disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.delivery.backoff import backoff
from angarium.delivery.blocks import Marks, blocks, first, last, offsets, runs
from angarium.delivery.effects import Answer, DeadLetterDue, Delivery, Effects, Taken
from angarium.delivery.key_order import KeyOrder
from angarium.delivery.loans import Loans
from angarium.delivery.proposals import Failing, Promising, Proposals, Vanishing
from angarium.delivery.queue_order import QueueOrder
from angarium.delivery.stream_order import StreamOrder
from angarium.errors import GroupFenced
from angarium.ids import Index, Micros, Offset
from angarium.kinds import GroupKind, Poison
from angarium.machine import changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from angarium.delivery.loans import Borrower, Loan
    from angarium.delivery.order import Order
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.machine.cursors import Group

EXPIRIES_MAX: Final = 2_048
"""Leases, in records, that end in one step; further ones end in the next."""

ORDERS: Final[Mapping[GroupKind, type[Order]]] = {
    GroupKind.STREAM: StreamOrder,
    GroupKind.QUEUE: QueueOrder,
    GroupKind.KEY: KeyOrder,
}
"""How each kind of group hands out records. A checkpoint group is handed none."""

ENDED: Final = "the lease ended"
GONE: Final = "its holder is gone"
"""Reasons kept with an attempt that nobody reported on."""


class Ledger:
    """One group's state in memory."""

    def __init__(
        self,
        group: Group,
        source: RecordSource,
        *,
        retry_times: RetryTimes,
        seed: int,
        now: Micros,
        preferred: str = "",
    ) -> None:
        self.group = group
        self.source = source
        self.retry_times = retry_times
        self.proposals = Proposals()
        self.is_stream = group.kind.is_ordered
        self.answers: list[Answer] = []
        self.letters: list[DeadLetterDue] = []
        self._seed = seed
        self._lease = 0
        self._turn = (0, 0)
        self._taken: dict[str, dict[int, int]] = {}
        self._ticket = 0
        self._waiting: dict[int, int] = {}
        """How many changes each ticket still waits for."""
        self._letters_told: set[int] = set()
        self._begin(preferred, now)

    def _begin(self, preferred: str, now: Micros) -> None:
        """Start from what the group's state says, and nothing else."""
        group = self.group
        self.generation = Index(group.generation)
        self.loans = Loans()
        self.vanishing = Marks()
        """Records that need no delivery, and whose acknowledgement is under way."""
        self.retry_times.look(now)
        self.order = ORDERS[group.kind](
            group, self.source, self.loans, retry_times=self.retry_times, now=now
        )
        if self.stream is not None:
            self.stream.preferred = preferred
        self._out: dict[tuple[str, int, int], dict[int, int]] = {}
        """What was lent in this step: by member, attempt and (in a stream) turn, blocks."""
        for offset, _ in sorted(group.intents.items(), key=lambda one: one[1].sequence):
            self.tell_letter(offset)

    def begin_anew(self, now: Micros) -> None:
        """Follow a group that was moved: everything on loan is nobody's any more."""
        members = list(self.loans.borrowers.values())
        for borrower in members:
            for loan in list(borrower.loans.values()):
                if loan.open:
                    self.take_back(loan, loan.open)
        for ticket in self.proposals.outdate():
            self.answer(ticket, GroupFenced.code, f"{self.group.name} was moved")
        self._begin(self.stream.preferred if self.stream is not None else "", now)
        for borrower in members:
            self.order.joined(self.loans.join(borrower.name, borrower.credit))

    @property
    def stream(self) -> StreamOrder | None:
        """The order of a stream group."""
        return self.order if isinstance(self.order, StreamOrder) else None

    # --- lending -----------------------------------------------------------------------------

    def lend(self, now: Micros) -> None:
        """Lend what can be lent."""
        self._lease = self.group.settings.ack_timeout_micros
        deadline = now + self._lease

        def hand(borrower: Borrower, block: int, bits: int, attempt: int) -> None:
            self.loans.lend(borrower, block, bits, deadline)
            # A delivery carries one attempt number, so where it changes another delivery begins,
            # in order.
            if self.is_stream and attempt != self._turn[1]:
                # In a stream deliveries follow each other as their records do.
                self._turn = (self._turn[0] + 1, attempt)
            lent = self._out.setdefault((borrower.name, attempt, self._turn[0]), {})
            lent[block] = lent.get(block, 0) | bits

        self.order.pick(now, hand)

    # --- coming back ---------------------------------------------------------------------------

    def take_back(self, loan: Loan, bits: int) -> None:
        """End a loan, and let the member know."""
        self.loans.take_back(loan, bits)
        # A member that is still there stops working on what it has lost. It would be refused
        # anyway when it settles it.
        if not loan.borrower.is_gone:
            taken = self._taken.setdefault(loan.borrower.name, {})
            taken[loan.block] = taken.get(loan.block, 0) | bits

    def keep(self, borrower: Borrower, block: int, bits: int, deadline: int) -> None:
        """Lend records to a member that has them already."""
        self.loans.lend(borrower, block, bits, deadline)
        # It may have lost them a moment ago, and not have been told yet.
        taken = self._taken.get(borrower.name, {})
        # Otherwise the step that grants it would also tell the member to drop it.
        if taken.get(block, 0) & bits:
            taken[block] &= ~bits

    def give_back(self, pieces: Iterable[tuple[Loan, int]]) -> None:
        """Take records back untried."""
        lowest = None
        for loan, bits in pieces:
            self.loans.take_back(loan, bits)
            if self.is_stream:
                offset = first(loan.block, bits)
                lowest = offset if lowest is None else min(lowest, offset)
            else:
                self.order.given_back(loan.block, bits)
        if lowest is not None:
            # In a stream nothing overtakes: what lies behind comes back with it, and is lent after
            # it.
            self._rewind(lowest)
            self.order.given_back(*next(blocks(lowest, lowest + 1)))

    def reopen(self, loan: Loan, bits: int, now: Micros) -> None:
        """Put records on loan again whose acknowledgement was refused."""
        deadline = now + self.group.settings.ack_timeout_micros
        # The lease begins anew: the member has done its work and waits for an answer that was a
        # refusal.
        self.loans.reopen(loan, bits, deadline)
        self.order.reopened(loan.block, bits)
        if loan.borrower.is_gone:
            self.loans.expire(loan, bits, now)
        elif self.stream is not None and not self.stream.goes_on_behind(
            loan.borrower, last(loan.block, bits)
        ):
            # Handed over or rewound since, as if they were settled. The stream comes to them again,
            # and would lend them a second time (seeds 21523 and 110981).
            self.take_back(loan, bits)
            self._rewind(first(loan.block, bits))
            self.order.given_back(loan.block, bits)

    def expire(self, now: Micros) -> None:
        """End the leases whose time has come, or as many as one step may."""
        # In a stream only the first one fails, so there is nothing to spread over several steps.
        # Stopping halfway would leave later records on loan behind an earlier one that is free.
        limit = 1 << 62 if self.is_stream else EXPIRIES_MAX
        failed: list[tuple[int, str]] = []
        for loan, bits in self.loans.overdue(now, limit=limit):
            self.take_back(loan, bits)
            reason = GONE if loan.borrower.is_gone else ENDED
            # A transaction may have acknowledged records while they were on loan. Counting an
            # attempt for these would make a retry, and later a dead letter, of a record that was
            # handled.
            done = bits & self.group.acked.bits(loan.block)
            if done:
                self.order.ended(loan.block, done)
            if bits & ~done:
                failed += [(offset, reason) for offset in offsets(loan.block, bits & ~done)]
                self.order.stalled(loan.borrower)
        if failed and self.is_stream:
            # The others were never reached by the member: records of a stream are handled one
            # after the other.
            failed = [min(failed)]
        for offset, reason in failed:
            self.fail(offset, now=now, reason=reason)

    def fail(
        self,
        offset: int,
        *,
        now: Micros,
        reason: str,
        delay: int | None = None,
        is_final: bool = False,
        ticket: int = 0,
    ) -> int:
        """Count an attempt; return how many changes that takes."""
        known = self.group.attempts.get(offset)
        # Counted from the committed state, never from memory: a leader that fell and came back
        # must not begin at one again. Planted as attempts-lost-at-failover and
        # attempts-not-counted.
        attempts = 1 if known is None else known.count + 1
        settings = self.group.settings
        may_bury = not self.is_stream or settings.poison is Poison.DEAD_LETTER
        # `is_final` outranks the settings: a member that rejects a record for good does not want
        # to see it again. Planted as rejected-record-is-tried-again.
        is_last = is_final or (may_bury and attempts >= settings.max_attempts)
        if is_last:
            delay = 0
        elif delay is None:
            delay = backoff(settings, attempts=attempts, offset=offset, seed=self._seed)
        if self.is_stream:
            # Before the record comes again, nothing behind it may be handled. Planted as
            # order-broken-after-nack-in-a-stream-group.
            self._rewind(offset)
        self.order.failing(offset)
        retry = changes.Retry(
            self.group.name,
            self.generation,
            Offset(offset),
            attempts,
            Micros(now + delay),
            reason,
            delay,
        )
        # Committed before the next attempt is lent: the log knows of every attempt that was made,
        # so a record that kills its members, and leaders with them, still comes to an end.
        self.proposals.add(retry, Failing(offset, ticket, is_last))
        if is_last:
            # Two changes, in this order: the attempt, then the promise. The letter is stored only
            # when the promise is committed, under a number that the machine gives, so that it is
            # stored once whoever leads. Planted as double-dead-letter.
            self.promise(offset, reason, ticket)
        return 2 if is_last else 1

    def promise(self, offset: int, reason: str, ticket: int = 0) -> None:
        """Promise a dead letter."""
        letter = changes.DeadLetter(self.group.name, self.generation, Offset(offset), reason)
        self.proposals.add(letter, Promising(offset, ticket))

    def settle_absent(self) -> None:
        """Acknowledge what needs no delivery."""
        pieces = self.order.absent
        if pieces:
            ranges = runs(_merged(pieces))
            ack = changes.Ack(self.group.name, self.generation, ranges)
            self.proposals.add(ack, Vanishing(pieces.copy()))
            for block, bits in pieces:
                self.vanishing.add(block, bits)
            pieces.clear()
        for offset in self.order.spent:
            known = self.group.attempts.get(offset)
            self.promise(offset, "" if known is None else known.reason)
        self.order.spent.clear()

    def _rewind(self, offset: int) -> None:
        """Take back everything on loan behind a record, to come again after it."""
        for loan, bits in list(self.loans.held_from(offset)):
            self.take_back(loan, bits)

    # --- telling -------------------------------------------------------------------------------

    def ticket(self, waits_for: int) -> int:
        """Return a ticket for a settlement that waits for `waits_for` changes."""
        self._ticket += 1
        self._waiting[self._ticket] = waits_for
        return self._ticket

    def next_ticket(self) -> int:
        """Return the number of the next ticket."""
        return self._ticket + 1

    def answer(self, ticket: int, code: str = "", message: str = "") -> None:
        """Note the fate of one change that a ticket waits for; the last one, or a refusal, ends."""
        left = self._waiting.get(ticket)
        # Answered already, by the refusal of another change of the same settlement.
        if left is None:
            return
        if code or left == 1:
            del self._waiting[ticket]
            self.answers.append(Answer(ticket, code, message))
        else:
            self._waiting[ticket] = left - 1

    def tell_letter(self, offset: int) -> None:
        """Have a promised dead letter stored, once."""
        intent = self.group.intents.get(offset)
        # Stored, or being stored. Burying twice is harmless only as long as it is the same
        # producer that does it. Planted as every-leader-buries-under-a-name-of-its-own.
        if intent is None or intent.sequence in self._letters_told:
            return
        self._letters_told.add(intent.sequence)
        known = self.group.attempts.get(offset)
        # Promised before the group was moved. The letter is still owed, and the attempts counted
        # since belong to another life of the record.
        if intent.generation != self.generation:
            known = None
        self.letters.append(
            DeadLetterDue(
                offset,
                intent.sequence,
                known.count if known is not None else 0,
                intent.reason,
                known.first_at if known is not None else 0,
                known.last_at if known is not None else 0,
            )
        )

    def letter_stored(self, sequence: int) -> None:
        """Forget a dead letter that is known to be stored."""
        self._letters_told.discard(sequence)

    def drain(self, now: Micros) -> Effects:
        """Return everything that is to be done."""
        effects = Effects(
            deliveries=[
                Delivery(member, runs(sorted(lent.items())), attempt, self._lease)
                for (member, attempt, _), lent in self._out.items()
            ],
            taken=[
                Taken(member, ranges)
                for member, taken in self._taken.items()
                if (ranges := runs(sorted(taken.items())))
            ],
            proposals=self.proposals.drain(self.group.name, self.generation, now=now),
            dead_letters=self.letters,
            answers=self.answers,
        )
        self._out, self._taken, self.letters, self.answers = {}, {}, [], []
        return effects


def _merged(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for block, bits in pieces:
        found[block] = found.get(block, 0) | bits
    return sorted(found.items())
