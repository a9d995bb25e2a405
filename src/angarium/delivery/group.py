"""One consumer group on one partition, while this node leads it.

What must survive is in the machine: the floor, what is acknowledged above it, attempts, promised
dead letters. Here is what may die with the leader: who is attached, who holds what until when, and
what is to be tried again when. Guaranteed, whatever members say or do:

- a record is on loan to one member at a time, and only that member can settle it;
- nothing is lent that is acknowledged, and nothing counts as acknowledged that is not committed;
- the attempts at a record are committed before it is lent again;
- after a change of leader nothing is lent before earlier members had time to claim what they hold.

Whoever drives it calls `advance` after each call, and when `wake_at` has come, and does what it is
told; `confirmed` brings back what became of each proposed change. When leadership is lost it is
thrown away, with everything in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.delivery import settlements
from angarium.delivery.blocks import blocks, runs
from angarium.delivery.confirmations import confirm
from angarium.delivery.effects import Waiting
from angarium.delivery.ledger import Ledger
from angarium.delivery.proposals import Burying, Jumping
from angarium.delivery.retry_times import RetryTimes, retry_of
from angarium.ids import Micros, Offset, Sequence
from angarium.kinds import Behind
from angarium.machine import changes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.delivery.effects import Accepted, Effects, Held
    from angarium.delivery.loans import Borrower
    from angarium.delivery.source import RecordSource
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome, Refused

GRACE_MICROS: Final = 3_000_000
"""How long a new leader waits for the members it was told to expect before it lends anything. Once
all of them are back it waits no longer."""

HELD_OFFSETS_MAX: Final = 1 << 20
"""Offsets that a member may claim to hold when it attaches. What it claims beyond is not its."""


class GroupDelivery:
    """Lends records to members, takes them back, and proposes what must be remembered."""

    def __init__(
        self,
        group: Group,
        source: RecordSource,
        *,
        seed: int,
        now: Micros,
        expected: Iterable[str] = (),
        preferred: str = "",
        retry_times: RetryTimes | None = None,
    ) -> None:
        """Begin where `group` stands; it is read whenever needed, and never written.

        `expected` are the members an earlier leader may have lent to: for a while nothing is lent
        but what they claim. `preferred` is who should have the partition, in a stream group.
        `retry_times` is what the same leader knows from before; None: it begins to lead.
        """
        retry_times = retry_times or RetryTimes(group)
        self._ledger = Ledger(
            group, source, retry_times=retry_times, seed=seed, now=now, preferred=preferred
        )
        self._expected = set(expected)
        # Who holds what is known to the members and to the leader's memory only, not to the log. A
        # new leader that lent at once would lend what the members of its predecessor still work
        # on.
        self._grace_until = now + GRACE_MICROS if self._expected else 0
        self._told_behind: set[str] = set()
        self._is_jumping = False

    # --- what is going on ------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        """The group's state in the machine."""
        return self._ledger.group

    @property
    def members(self) -> dict[str, int]:
        """The attached members, each with the records it has on loan."""
        return {one.name: one.on_loan for one in self._ledger.loans.borrowers.values()}

    @property
    def on_loan(self) -> int:
        """How many records are on loan."""
        return self._ledger.loans.on_loan

    @property
    def owner(self) -> str:
        """In a stream group: the active member; empty if there is none."""
        stream = self._ledger.stream
        return stream.owner.name if stream is not None and stream.owner is not None else ""

    @property
    def is_stopped(self) -> bool:
        """In a stream group: whether a record whose attempts are used up holds everything."""
        stream = self._ledger.stream
        return stream is not None and stream.is_stopped

    @property
    def is_behind(self) -> bool:
        """Whether records that the group has not seen were trimmed away."""
        return self.group.is_behind(self._ledger.source.start_offset)

    def waiting(self, now: Micros) -> Waiting | None:
        """Return what the group waits for, and until when; None: for no time to come."""
        if self._is_in_grace(now):
            names = ", ".join(sorted(self._expected))
            return Waiting(f"members of the former leader: {names}", Micros(self._grace_until))
        if self.is_stopped:
            first = min(self.group.attempts, default=self.group.floor)
            return Waiting(f"record {first}, whose attempts are used up", Micros(0))
        retry = self._ledger.retry_times.soonest(now)
        lends_at = self._ledger.order.wake_at() or 0
        if lends_at > now and (retry is None or lends_at < retry[0]):
            return Waiting("a delayed record", Micros(lends_at))
        if retry is None:
            return None
        return Waiting(retry_of(retry[1]), Micros(retry[0]))

    @property
    def wants_records(self) -> bool:
        """Whether somebody could be lent more, so that new records are news."""
        return bool(self._ledger.loans.hungry)

    # --- who is there ----------------------------------------------------------------------------

    def attach(
        self, member: str, *, credit: int, held: Iterable[Held] = (), now: Micros
    ) -> tuple[int, ...]:
        """Let a member take part; return the ranges of what it may keep of what it says it holds.

        It may keep what nobody else has been lent and what has not come to an end otherwise, with
        a lease that begins anew. One that comes again under the same name takes over from its
        earlier self; whatever that one had on loan and this one does not hold has failed.
        """
        # At the beginning of every call: an operator may have moved the group (a new generation)
        # since the last one. What was on loan before says nothing about what is to be handled now.
        self._follow(now)
        ledger = self._ledger
        borrower = ledger.loans.borrowers.get(member)
        is_new = borrower is None
        if borrower is None:
            borrower = ledger.loans.join(member, credit)
        else:
            borrower.credit = credit
            ledger.loans.appetite(borrower)
        # What it claims and may keep is on loan again before anything else is decided, so that no
        # step in between can lend it to somebody else.
        kept = self._keep(borrower, held, now)
        for block, loan in sorted(borrower.loans.items()):
            lost = loan.open & ~kept.get(block, 0)
            if lost:
                # Its earlier self had these, and this one does not: they count as a failed attempt
                # with the next step.
                ledger.loans.expire(loan, lost, now)
        if is_new:
            ledger.order.joined(borrower)
        self._expected.discard(member)
        return runs(sorted(kept.items()))

    def _keep(self, borrower: Borrower, held: Iterable[Held], now: Micros) -> dict[int, int]:
        ledger = self._ledger
        deadline = now + ledger.group.settings.ack_timeout_micros
        kept: dict[int, int] = {}
        room = HELD_OFFSETS_MAX
        for start, end, attempt in sorted(held):
            # A member may claim anything. Below the floor it is settled, above the end it was
            # never lent.
            low, high = max(start, ledger.group.floor), min(end, ledger.source.end_offset)
            room -= max(high - low, 0)
            if low >= high or room < 0:
                continue
            for block, wanted in blocks(low, high):
                # Acknowledged while the leaders changed, and so not to be handled again.
                bits = wanted & ~ledger.group.acked.bits(block)
                loan = borrower.loans.get(block)
                own = loan.open & bits if loan is not None else 0
                if loan is not None and own:
                    ledger.loans.extend(loan, own, deadline)
                # Never what somebody else holds: one holder at a time, whoever came first.
                free = bits & ~ledger.loans.held(block)
                granted = ledger.order.claim(borrower, block, free, attempt) if free else 0
                if granted:
                    ledger.keep(borrower, block, granted, deadline)
                if own | granted:
                    kept[block] = kept.get(block, 0) | own | granted
        return kept

    def detach(self, member: str, *, clean: bool, now: Micros) -> None:
        """Remove a member. If it left `clean`, its loans go back untried. If it died, each of its
        records counts as a failed attempt: otherwise a record that kills every consumer would
        be lent for ever. (In a stream only the first of its records has failed.)
        """
        self._follow(now)
        ledger = self._ledger
        borrower = ledger.loans.borrowers.get(member)
        if borrower is None:
            return
        # First: nothing that comes back below may be lent to it again.
        ledger.loans.leave(borrower)
        loans = [borrower.loans[block] for block in sorted(borrower.loans)]
        lent = [(loan, loan.open) for loan in loans if loan.open]
        if clean:
            ledger.give_back(lent)
        else:
            for loan, bits in lent:
                # Through `expire` and not at once, so that at most `EXPIRIES_MAX` records fail in
                # one step.
                ledger.loans.expire(loan, bits, now)
        # Last: its keys, or its partition, go to others only when its loans are dealt with.
        ledger.order.left(borrower)
        self._told_behind.discard(member)

    def set_credit(self, member: str, credit: int) -> None:
        """Say how many records a member may have on loan; fewer than it has take none back."""
        borrower = self._ledger.loans.borrowers.get(member)
        if borrower is not None:
            borrower.credit = credit
            self._ledger.loans.appetite(borrower)

    def prefer(self, member: str) -> None:
        """Say who should have the partition of a stream group, by its assignment.

        If somebody else has it, that one is lent nothing more, and the change comes when what it
        has on loan is settled or its leases have ended. Empty: nobody in particular.
        """
        if self._ledger.stream is not None:
            self._ledger.stream.preferred = member

    # --- what members say ------------------------------------------------------------------------

    def acknowledge(
        self, member: str, ranges: tuple[int, ...], *, now: Micros, cumulative: bool = False
    ) -> Accepted | Refused:
        """Acknowledge records on loan; with `cumulative` everything on loan below them, too."""
        self._follow(now)
        return settlements.acknowledge(self._ledger, member, ranges, cumulative=cumulative)

    def fail(
        self,
        member: str,
        ranges: tuple[int, ...],
        *,
        now: Micros,
        delay: int | None = None,
        reason: str = "",
        is_final: bool = False,
    ) -> Accepted | Refused:
        """Count a failed attempt at records on loan; they come again, not before `delay` µs.

        Without a delay as the group's backoff says. After the last attempt, or one that `is_final`
        whatever the group's settings are, it is a dead letter.
        """
        self._follow(now)
        return settlements.fail(
            self._ledger, member, ranges, now=now, delay=delay, reason=reason, is_final=is_final
        )

    def release(self, member: str, ranges: tuple[int, ...], *, now: Micros) -> Accepted | Refused:
        """Take records on loan back untried."""
        self._follow(now)
        return settlements.release(self._ledger, member, ranges)

    def extend(
        self, member: str, ranges: tuple[int, ...], *, now: Micros, lease: int | None = None
    ) -> Accepted | Refused:
        """Let the lease of records on loan begin anew, for `lease` µs or as the group has it."""
        self._follow(now)
        return settlements.extend(self._ledger, member, ranges, now=now, lease=lease)

    # --- what became of things --------------------------------------------------------------------

    def confirmed(self, number: int, outcome: Outcome, *, now: Micros) -> None:
        """Hear what the machine made of a proposed change; a refusal is an outcome, too.

        To be told after the change is applied, in the order of the proposals.
        """
        self._follow(now)
        if confirm(self._ledger, number, outcome, now=now):
            self._is_jumping = False

    def buried(self, offset: int, sequence: int) -> None:
        """Hear that a dead letter is stored."""
        change = changes.DeadLettered(self.group.name, Offset(offset), Sequence(sequence))
        self._ledger.proposals.add(change, Burying(offset, sequence))

    # --- stepping ---------------------------------------------------------------------------------

    def advance(self, now: Micros) -> Effects:
        """Do whatever can be done now, and return what follows from it."""
        self._follow(now)
        ledger = self._ledger
        # Before lending, so that what comes back in this step can be lent in it.
        ledger.expire(now)
        behind = self._look_behind()
        # A group behind the partition's start has missed records. It either jumps or its members
        # are told, but it never goes on silently.
        # Asked first: a grace that has run out ends also where nothing is lent for other reasons,
        # or its end would wake us without end.
        is_in_grace = self._is_in_grace(now)
        if not (is_in_grace or behind or self.is_behind or self.group.paused):
            ledger.lend(now)
        # Behind lending, which is what finds gaps and expired records.
        ledger.settle_absent()
        effects = ledger.drain(now)
        effects.behind = behind
        effects.wake_at = self._wake_at(now)
        return effects

    def _follow(self, now: Micros) -> None:
        """Begin anew if somebody moved the group: everything on loan is nobody's any more."""
        # The generation is part of the group's committed state, and of every change that is
        # proposed: the machine refuses what was decided under an earlier one.
        if self.group.generation != self._ledger.generation:
            self._ledger.begin_anew(now)
            self._told_behind.clear()
            self._is_jumping = False
            self._grace_until = 0

    def _is_in_grace(self, now: Micros) -> bool:
        if self._grace_until and (now >= self._grace_until or not self._expected):
            self._grace_until = 0
        stream = self._ledger.stream
        if stream is not None and (
            stream.owner is not None or stream.preferred in self._ledger.loans.borrowers
        ):
            # The member that claimed what comes next was the owner, or the preferred one has come.
            return False
        return self._grace_until > 0

    def _look_behind(self) -> list[str]:
        """Return who is to be told that the group fell behind; or let it jump."""
        if not self.is_behind:
            self._told_behind.clear()
            return []
        ledger = self._ledger
        if ledger.group.settings.behind is Behind.JUMP:
            # One proposal at a time: the floor moves only when it is applied.
            if not self._is_jumping:
                self._is_jumping = True
                gone = (ledger.group.floor, ledger.source.start_offset)
                ack = changes.Ack(ledger.group.name, ledger.generation, gone)
                ledger.proposals.add(ack, Jumping())
            return []
        news = [name for name in ledger.loans.borrowers if name not in self._told_behind]
        self._told_behind.update(news)
        return news

    def _wake_at(self, now: Micros) -> Micros | None:
        ledger = self._ledger
        # A step proposes `CHANGES_MAX` changes at the most. The rest is due at once.
        if ledger.proposals.has_more:
            return now
        times = [ledger.loans.next_deadline, ledger.proposals.again_at]
        if self._grace_until:
            times.append(self._grace_until)
        elif ledger.loans.hungry and not (self.group.paused or self.is_behind):
            # While nothing is lent, what is due stays due: its time would wake us without end.
            times.append(ledger.order.wake_at())
        known = [time for time in times if time is not None]
        return Micros(max(min(known), now)) if known else None
