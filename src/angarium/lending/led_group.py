"""One group of a partition this node leads: `GroupDelivery` decides, this does.

It brings in what members say, carries out what follows (commits, deliveries, dead letters), keeps
the logged list of members up to date, and lets members go whose node is not heard of any more.

Whatever `delivery` is told, it may read the log, and a damaged segment cannot be read until it is
mended: then the group is given up, and everybody attaches again (`LedPartition.drop`).
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, assert_never

from angarium.api import Settled, Verb
from angarium.delivery import GRACE_MICROS, Held, Waiting
from angarium.errors import AngariumError, GroupFenced, LimitExceeded, NotLeader, OffsetOutOfRange
from angarium.ids import Micros
from angarium.lending.configs import config_of
from angarium.lending.flat import without
from angarium.lending.gates import Gate, GatedRecords
from angarium.lending.lending_limits import LEAP_MICROS, LENT_BYTES_MAX, SESSION_S
from angarium.lending.letters import burial
from angarium.machine.changes import Member, Members
from angarium.machine.outcomes import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Settlement
    from angarium.delivery import Accepted, DeadLetterDue, Effects
    from angarium.lending.led_partition import LedPartition
    from angarium.lending.ports import Wanted
    from angarium.lending.seat import LedSeat
    from angarium.machine.changes import Change
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome

SECOND_MICROS: Final = 1_000_000
LIST_AGAIN_MICROS: Final = 500_000
"""How long a list of members that was not taken waits before it is proposed again."""

MILLISECOND_MICROS: Final = 1_000

_WRITTEN: Final = frozenset((Verb.ACK, Verb.NACK, Verb.REJECT))
"""What is committed before it is answered."""


class LedGroup:
    """A group with members, or with dead letters to store."""

    def __init__(self, led: LedPartition, group: Group) -> None:
        self.led = led
        self._around = led.around
        now = led.around.now()
        self.group = group
        self.seats: dict[str, LedSeat] = {}
        self.is_over = False
        self.letters: deque[DeadLetterDue] = deque()
        """Dead letters that are to be stored, in the order of their sequences."""
        self.is_burying = False
        """Whether somebody stores them (`letters.burial`)."""
        logged = [member.name for member in group.members]
        self._gate = Gate(led, group)
        source = GatedRecords(led.records, self._gate)
        self.delivery = led.around.delivery(
            led, group, source, retry_times=led.retry_times(group), now=now, expected=logged
        )
        self._missing = dict.fromkeys(logged, now + GRACE_MICROS)
        """Logged members that have not come back, or lost their node: until when they count."""
        self._tickets: dict[int, tuple[int, Callable[[Settled], None]]] = {}
        self._is_listing = False
        """Whether a list of members is on its way into the log."""
        self._is_listed = False
        """Whether the logged list is that of now."""
        self._list_at = 0
        """Not before: a list that was refused is not proposed again at once."""
        self._under_way = 0
        """Changes that were proposed and whose fate is not known."""
        self.on_settled: Callable[[], None] | None = None
        """Called once the group is given up and the fate of all its changes is known."""
        self._is_waiting = False
        """Whether something is left to do very soon."""
        self._record_bytes = 0
        """How large records are, as far as it matters to how many are lent."""

    # --- members ------------------------------------------------------------------------------

    def join(self, seat: LedSeat, wanted: Wanted) -> None:
        """Let a member take part, or come again."""
        now = self._around.now()
        member = seat.membership.member
        known = self.seats.get(member)
        # A session that began later than now was numbered while its node's clock was ahead. It is
        # no later than this one, and must not keep the member away for as long.
        is_later = known is not None and known.membership.session > seat.membership.session
        if known is not None and is_later and known.membership.session <= now + LEAP_MICROS:
            # Retriable: clocks of nodes differ, and the other one may be about to go.
            seat.drop(NotLeader(f"{member} is attached through another connection at the moment"))
            return
        members_max = self.led.members_max
        if known is None and len(self.seats) >= members_max:
            seat.drop(LimitExceeded("members_max", f"{self.group.name} has {members_max} here"))
            return
        self.seats[member] = seat
        if known is not None:
            known.drop(GroupFenced(f"{member} is attached through another connection now"))
        self._missing.pop(member, None)
        held = sorted(Held(*one) for one in wanted.held)
        self._measure()
        try:
            kept = self.delivery.attach(member, credit=self._allowed(seat), held=held, now=now)
        except AngariumError as error:
            self.led.drop(self, error)
            return
        claimed = tuple(bound for one in held for bound in (one.start, one.end))
        refused = without(claimed, kept)
        self._members_changed()
        seat.sit_down(self)
        # From here on the agent may say something at once, in the midst of being told.
        seat.sink.attached(self.group.kind, config_of(self.group.settings))
        if refused:
            seat.sink.withdrawn(refused)

    def leave(self, seat: LedSeat, *, lost: bool) -> None:
        """Let a member go; one that was replaced by its later self is gone already."""
        member = seat.membership.member
        if self.seats.get(member) is seat and not self.is_over:
            del self.seats[member]
            self._missing.pop(member, None)
            try:
                self.delivery.detach(member, clean=not lost, now=self._around.now())
            except AngariumError as error:
                self.led.drop(self, error)
            else:
                self._members_changed()

    def orphan(self, seat: LedSeat) -> None:
        """Hear that a member's node cannot be reached: it may come back for a while."""
        if self.seats.get(seat.membership.member) is seat and not self.is_over:
            seat.is_orphaned = True
            self.delivery.set_credit(seat.membership.member, self._allowed(seat))
            until = Micros(self._around.now() + int(SESSION_S * SECOND_MICROS))
            self._missing[seat.membership.member] = until
            self.led.host.wake(self, until)

    def set_credit(self, member: str, credit: int) -> None:
        """Say how many records a member may have on loan."""
        seat = self.seats.get(member)
        if seat is not None:
            seat.credit = credit
            self.delivery.set_credit(member, self._allowed(seat))
            self.led.stir(self)

    def _allowed(self, seat: LedSeat) -> int:
        """Return how many records a member may have on loan, large ones taken into account."""
        if seat.is_orphaned or seat.is_stuck:
            return 0
        if not self._record_bytes:
            return seat.credit
        return min(seat.credit, max(1, LENT_BYTES_MAX // self._record_bytes))

    def _measure(self) -> None:
        """Follow what records are like: everybody is lent as many as its bytes allow."""
        records = self.led.records
        if not records.record_bytes:
            with suppress(AngariumError):  # sending them meets that again
                records.measure(self.group.floor)
        size, known = records.record_bytes, self._record_bytes
        if size == known or (known and known // 2 <= size <= 2 * known):
            return  # near enough
        self._record_bytes = size
        for member, seat in self.seats.items():
            self.delivery.set_credit(member, self._allowed(seat))

    def _give_back_stale(self, now: Micros) -> None:
        """Take back untried what members have left at this leader for too long."""
        for member, seat in self.seats.items():
            stale_at = seat.stale_at
            if stale_at is not None and stale_at <= now:
                self.delivery.release(member, seat.take_stale(now), now=now)
                self.delivery.set_credit(member, self._allowed(seat))

    def _members_changed(self) -> None:
        self._is_listed = False
        self.assign()
        self.led.stir(self)

    def assign(self) -> None:
        """Find out who should have the partition of a stream, and let it have it."""
        if self.group.kind.is_ordered and not self.is_over:
            members = {name: seat.membership.topics for name, seat in self.seats.items()}
            known = next(iter(members.values()), ())
            for name in self._missing:
                members.setdefault(name, known)
            led = self.led
            nodes = {name: seat.membership.node for name, seat in self.seats.items()}
            chosen = self._around.preferred(members, led.topic, led.number, nodes)
            self.delivery.prefer(chosen)
            self.led.stir(self)

    def _list_members(self) -> None:
        """Have the members of now logged: a new leader waits for those it finds there."""
        if self._is_listed or self._is_listing or self._around.now() < self._list_at:
            return
        listed = {member.name: member for member in self.group.members}
        members = {name: listed[name] for name in self._missing if name in listed}
        members |= {name: Member(name, seat.membership.node) for name, seat in self.seats.items()}
        wanted = tuple(member for _, member in sorted(members.items()))
        self._is_listed = True
        if wanted == self.group.members:
            return
        self._is_listing = True
        version = self.group.members_version + 1
        self.led.changes.submit(Members(self.group.name, version, wanted), self._listed)

    def _listed(self, outcome: Outcome | AngariumError) -> None:
        self._is_listing = False
        if isinstance(outcome, Refused | AngariumError):
            self._is_listed = False
            self._list_at = self._around.now() + LIST_AGAIN_MICROS
            self.led.host.wake(self, Micros(self._list_at))
        else:
            self.led.stir(self)

    def _let_go_missing(self, now: Micros) -> None:
        """Give up members that did not come back in time."""
        for member in [one for one, until in self._missing.items() if until <= now]:
            del self._missing[member]
            seat = self.seats.get(member)
            if seat is not None and seat.is_orphaned:
                seat.drop(GroupFenced(f"{member} was not heard from for too long"))
                del self.seats[member]
                self.delivery.detach(member, clean=False, now=now)
            self._members_changed()

    # --- what members say -----------------------------------------------------------------------

    def settle(
        self, member: str, settlement: Settlement, answer: Callable[[Settled], None]
    ) -> None:
        """Settle records of a member; `answer` is called once."""
        led = self.led
        if led.changes.is_full and settlement.verb in _WRITTEN:
            full = "CHANGES_WAITING_MAX: too much waits to be committed"
            answer(Settled(0, "RESOURCE_EXHAUSTED", full))
            return
        if settlement.generation not in {None, self.group.generation}:
            moved = f"the group {self.group.name} was moved since this was handed out"
            answer(Settled(0, GroupFenced.code, moved))
            return
        try:
            verdict = self._verdict(member, settlement)
        except AngariumError as error:
            led.drop(self, error)
            # Whatever it came to was not proposed, and is given up with the group.
            answer(Settled(0, NotLeader.code, f"the leader cannot read at the moment: {error}"))
            return
        if isinstance(verdict, Refused):
            answer(Settled(0, verdict.code, verdict.message))
            return
        if verdict.ticket:
            self._tickets[verdict.ticket] = (verdict.records, answer)
        else:
            answer(Settled(verdict.records))
        self.led.stir(self)

    def _verdict(self, member: str, settlement: Settlement) -> Accepted | Refused:
        delivery, now, ranges = self.delivery, self._around.now(), settlement.ranges
        micros = None if settlement.delay_ms is None else settlement.delay_ms * MILLISECOND_MICROS
        match settlement.verb:
            case Verb.ACK:
                return delivery.acknowledge(
                    member, ranges, now=now, cumulative=settlement.cumulative
                )
            case Verb.NACK | Verb.REJECT:
                return delivery.fail(
                    member,
                    ranges,
                    now=now,
                    delay=micros,
                    reason=settlement.reason,
                    is_final=settlement.verb is Verb.REJECT,
                )
            case Verb.RELEASE:
                return delivery.release(member, ranges, now=now)
            case Verb.EXTEND:
                return delivery.extend(member, ranges, now=now, lease=micros)
            case _:
                assert_never(settlement.verb)

    # --- stepping -------------------------------------------------------------------------------

    def step(self) -> None:
        """Do whatever can be done now."""
        if self.is_over:
            return
        now = self._around.now()
        try:
            if self._missing:
                self._let_go_missing(now)
            self._give_back_stale(now)
            self._measure()
            look_at = self._gate.look(now)
            if look_at is not None:
                self.led.host.wake(self, look_at)
            self._carry_out(self.delivery.advance(now), now)
        except AngariumError as error:
            # The log cannot be read here, at the moment. Everything that counts is in the machine.
            self.led.drop(self, error)
            return
        self._list_members()

    @property
    def wants_records(self) -> bool:
        """Whether new records are news."""
        return self.delivery.wants_records

    def waiting(self, now: Micros) -> Waiting | None:
        """Return what the group waits for, and until when; None: for no time to come."""
        waiting = self.delivery.waiting(now)
        if waiting is None and self._gate.is_in_the_way:
            return Waiting("records from before the topic was given partitions", Micros(0))
        return waiting

    @property
    def is_settling(self) -> bool:
        """Whether the fate of some of its changes is not known."""
        return self._under_way > 0

    @property
    def is_idle(self) -> bool:
        """Whether nobody needs it and nothing is under way: it can be made anew at any time."""
        return not (
            self.seats
            or self._missing
            or self.group.intents
            or self.delivery.on_loan
            or self._under_way
            or self._is_listing
            or self._is_waiting
        )

    def close(self, error: AngariumError) -> None:
        """End: this node leads no more, or the group is gone."""
        self.is_over = True
        tickets, self._tickets = self._tickets, {}
        for _, answer in tickets.values():
            answer(Settled(0, "OUTCOME_UNKNOWN", f"not known to be committed: {error}"))
        for seat in list(self.seats.values()):
            seat.drop(error)
        self.seats.clear()

    def resume(self, seat: LedSeat) -> None:
        """Send more to a member whose window has opened."""
        if seat.is_stuck:
            seat.is_stuck = False
            self.set_credit(seat.membership.member, seat.credit)
        try:
            seat.send(self.led.records, self._around.now())
        except AngariumError as error:
            self.led.drop(self, error)

    def _carry_out(self, effects: Effects, now: Micros) -> None:
        for number, change in effects.proposals:
            self._propose(number, change)
        for member, ranges in effects.taken:
            seat = self.seats.get(member)
            if seat is not None:
                seat.withdraw(ranges)
        generation = self.group.generation
        for member, ranges, attempt, lease in effects.deliveries:
            seat = self.seats.get(member)
            if seat is not None:
                seat.lend(ranges, attempt, now=now, lease=lease, generation=generation)
        for ticket, code, message in effects.answers:
            records, answer = self._tickets.pop(ticket, (0, None))
            if answer is not None:
                answer(Settled(0, code, message) if code else Settled(records))
        for member in effects.behind:
            self._tell_behind(member)
        self._look_ahead(effects, now)

    def _look_ahead(self, effects: Effects, now: Micros) -> None:
        if effects.dead_letters:
            self.letters.extend(effects.dead_letters)
            if not self.is_burying:
                self.is_burying = True
                self._around.carry_out(burial(self))
        # What is proposed again is so within half a second; ends of leases nobody holds are later.
        self._is_waiting = effects.wake_at is not None and effects.wake_at <= now + SECOND_MICROS
        if effects.wake_at is not None:
            self.led.host.wake(self, effects.wake_at)
        for seat in self.seats.values():
            if seat.has_more:
                seat.send(self.led.records, now)
            if seat.stale_at is not None:
                self.led.host.wake(self, Micros(seat.stale_at))

    def _propose(self, number: int, change: Change) -> None:
        self._under_way += 1

        def fate(outcome: Outcome | AngariumError) -> None:
            self._under_way -= 1
            if self.is_over:
                if self.on_settled is not None and not self._under_way:
                    self.on_settled()
                return
            if isinstance(outcome, AngariumError):
                outcome = Refused(outcome.code, str(outcome))
            try:
                self.delivery.confirmed(number, outcome, now=self._around.now())
            except AngariumError as error:
                self.led.drop(self, error)
            else:
                self.led.stir(self)

        self.led.changes.submit(change, fate)

    def buried(self, offset: int, sequence: int) -> None:
        """Hear that a dead letter is stored."""
        if not self.is_over:
            self.delivery.buried(offset, sequence)
            self.led.stir(self)

    def _tell_behind(self, member: str) -> None:
        seat = self.seats.pop(member, None)
        if seat is not None:
            records = self.led.records
            seat.drop(
                OffsetOutOfRange(
                    offset=self.group.floor, start=records.start_offset, end=records.end_offset
                )
            )
            self.delivery.detach(member, clean=True, now=self._around.now())
            self._members_changed()
