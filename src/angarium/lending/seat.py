"""A member of a group at the leader of a partition: what is on its way to it, and what it says."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from angarium.api import Settled, Verb
from angarium.api.groups import RANGES_MAX, SETTLEMENTS_MAX
from angarium.errors import AngariumError, InvalidArgument, NotLeader, TooLarge
from angarium.lending.flat import flattened, without
from angarium.lending.lending_limits import STAYS_PER_LEASE, WINDOW_BYTES
from angarium.lending.ports import Lending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import Settlement
    from angarium.ids import Micros
    from angarium.lending.led_group import LedGroup
    from angarium.lending.log_records import LogRecords
    from angarium.lending.ports import Membership, Sink


class _Lot(NamedTuple):
    """Records that were lent and have not all been sent."""

    ranges: tuple[int, ...]
    attempt: int
    until: int
    """When the lease ends."""
    generation: int
    stale_at: int
    """When what has not been sent of it goes back untried."""


class LedSeat:
    """Implements `ports.Seat`."""

    def __init__(self, membership: Membership, sink: Sink, *, credit: int) -> None:
        self.membership = membership
        self.sink = sink
        self.credit = credit
        self.is_orphaned = False
        """True while its agent cannot be reached."""
        self.is_stuck = False
        """True while it takes nothing of what was lent to it: it is lent no more."""
        self._group: LedGroup | None = None
        self._lots: deque[_Lot] = deque()
        self._window = WINDOW_BYTES
        self._is_gone = False

    @property
    def is_gone(self) -> bool:
        """True once it was detached or dropped."""
        return self._is_gone

    def sit_down(self, group: LedGroup) -> None:
        """Begin, at a group that is open."""
        self._group = group

    # --- what the agent says --------------------------------------------------------------------

    def allow(self, credit: int) -> None:
        """Have no more than so many records on loan."""
        self.credit = credit
        if self._group is not None and not self._is_gone:
            self._group.set_credit(self.membership.member, credit)
        self.sink.allowed(credit)

    def taken(self, size: int) -> None:
        """Hear that so many bytes were passed on: there is room for more."""
        self._window += size
        if self._group is not None and (self.has_more or (self.is_stuck and self._window > 0)):
            self._group.resume(self)

    def ask(self, ask: int, settlements: Sequence[Settlement]) -> None:
        """Settle records, and tell the sink once all is committed."""
        self.settle(settlements, partial(self.sink.told, ask))

    def settle(
        self, settlements: Sequence[Settlement], told: Callable[[Sequence[Settled]], None]
    ) -> None:
        """Settle records; `told` is called once all is committed, or refused."""
        answers: list[Settled | None] = [None] * len(settlements)
        left = len(settlements)

        def answer(at: int, settled: Settled) -> None:
            nonlocal left
            answers[at] = settled
            left -= 1
            if not left:
                told([one for one in answers if one is not None])

        group = self._group
        if not settlements:
            told(())
            return
        for at, one in enumerate(settlements):
            refusal = _fault(one, len(settlements))
            if refusal is None and (group is None or self._is_gone):
                gone = NotLeader("this member is not attached here any more")
                refusal = Settled(0, gone.code, str(gone))
            if refusal is not None:
                answer(at, refusal)
            elif group is not None:
                group.settle(
                    self.membership.member,
                    one,
                    lambda settled, at=at: answer(at, settled),  # type: ignore[misc]
                )

    def detach(self, *, lost: bool) -> None:
        """Leave; nothing more is sent."""
        if not self._is_gone:
            self._is_gone = True
            self._lots.clear()
            if self._group is not None:
                self._group.leave(self, lost=lost)

    def orphan(self) -> None:
        """Hear that the agent cannot be reached: it may come back for a while."""
        if not self._is_gone:
            self._lots.clear()
            if self._group is None:
                self._is_gone = True  # it has not begun yet
            else:
                self._group.orphan(self)

    # --- what the leader does -------------------------------------------------------------------

    def lend(
        self, ranges: tuple[int, ...], attempt: int, *, now: int, lease: int, generation: int
    ) -> None:
        """Have records sent that were lent to the member."""
        stale_at = now + lease // STAYS_PER_LEASE
        self._lots.append(_Lot(ranges, attempt, now + lease, generation, stale_at))

    def take_stale(self, now: int) -> tuple[int, ...]:
        """Return what has waited too long to be sent, and send it no more."""
        lots, stale = self._lots, []
        while lots and lots[0].stale_at <= now:
            stale.append(lots.popleft().ranges)
        self.is_stuck = self.is_stuck or bool(stale)
        return flattened(stale)

    @property
    def stale_at(self) -> int | None:
        """When something that waits to be sent has waited too long; None if nothing waits."""
        return self._lots[0].stale_at if self._lots else None

    def withdraw(self, ranges: tuple[int, ...]) -> None:
        """Take back what was lent, sent or not."""
        if self._lots:
            left = [lot._replace(ranges=without(lot.ranges, ranges)) for lot in self._lots]
            self._lots = deque(lot for lot in left if lot.ranges)
        self.sink.withdrawn(ranges)

    def drop(self, error: AngariumError) -> None:
        """Tell the agent that this leader cannot go on with it."""
        if not self._is_gone:
            self._is_gone = True
            self._lots.clear()
            self.sink.dropped(error)

    def send(self, records: LogRecords, now: Micros) -> None:
        """Send as much as the window allows."""
        lots = self._lots
        while lots and self._window > 0:
            lot = lots[0]
            parcel = next(records.parcels(lot.ranges), None)
            if parcel is None:
                lots.popleft()  # trimmed away meanwhile
                continue
            rest = without(lot.ranges, (0, parcel.ranges[-1]))
            if rest:
                lots[0] = lot._replace(ranges=rest)
            else:
                lots.popleft()
            self._window -= parcel.bytes
            lease_ms = max((lot.until - now) // 1_000, 1)
            self.sink.lent(
                Lending(
                    parcel.ranges,
                    parcel.batches,
                    parcel.bytes,
                    lot.attempt,
                    lease_ms,
                    lot.generation,
                )
            )

    @property
    def has_more(self) -> bool:
        """Whether something waits to be sent and may be."""
        return bool(self._lots) and self._window > 0


def _fault(settlement: Settlement, count: int) -> Settled | None:
    """Return the refusal of a settlement that says what none may say."""
    wrong = ""
    if count > SETTLEMENTS_MAX:
        wrong = f"SETTLEMENTS_MAX: {count} settlements at once; {SETTLEMENTS_MAX} are taken"
    elif len(settlement.ranges) > 2 * RANGES_MAX:
        wrong = f"RANGES_MAX: {len(settlement.ranges) // 2} ranges; {RANGES_MAX} are taken"
    if wrong:
        return Settled(0, TooLarge.code, wrong)
    if settlement.delay_ms is not None and settlement.delay_ms < 0:
        return Settled(0, InvalidArgument.code, "a delay is not negative")
    if settlement.cumulative and settlement.verb is not Verb.ACK:
        return Settled(0, InvalidArgument.code, "only an acknowledgement can be cumulative")
    return None
