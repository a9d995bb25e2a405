"""A member of a group at the leader of a partition: what is on its way to it, and what it says."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from angarium.api import Settled, Verb
from angarium.errors import AngariumError, InvalidArgument, NotLeader, TooLarge
from angarium.service.groups.flat import flattened, without
from angarium.service.groups.limits import STAYS_PER_LEASE, WINDOW_BYTES
from angarium.service.groups.ports import Lending
from angarium.wire.operations import RANGES_MAX, SETTLEMENTS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import Settlement
    from angarium.ids import Micros
    from angarium.service.groups.ports import Membership, Sink
    from angarium.service.groups.records import LogRecords


class _Lot(NamedTuple):
    """Records that were lent and have not all been sent."""

    ranges: tuple[int, ...]
    attempt: int
    until: int
    """When the lease ends."""
    generation: int
    stale_at: int
    """When what has not been sent of it goes back untried."""


class Table(Protocol):
    """The group at which a seat stands."""

    def settle(
        self, member: str, settlement: Settlement, answer: Callable[[Settled], None]
    ) -> None:
        """Settle records of a member; `answer` is called once, now or when it is committed."""

    def set_credit(self, member: str, credit: int) -> None:
        """Say how many records a member may have on loan."""

    def leave(self, seat: LedSeat, *, lost: bool) -> None:
        """Let a member go."""

    def orphan(self, seat: LedSeat) -> None:
        """Hear that a member's agent cannot be reached."""

    def resume(self, seat: LedSeat) -> None:
        """Send more to a member whose window has opened."""


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
        self._table: Table | None = None
        self._lots: deque[_Lot] = deque()
        self._window = WINDOW_BYTES
        self._is_gone = False

    @property
    def is_gone(self) -> bool:
        """True once it was detached or dropped."""
        return self._is_gone

    def take_place(self, table: Table) -> None:
        """Begin, at a group that is open."""
        self._table = table

    # --- what the agent says --------------------------------------------------------------------

    def allow(self, credit: int) -> None:
        """Have no more than so many records on loan."""
        self.credit = credit
        if self._table is not None and not self._is_gone:
            self._table.set_credit(self.membership.member, credit)
        self.sink.allowed(credit)

    def taken(self, size: int) -> None:
        """Hear that so many bytes were passed on: there is room for more."""
        self._window += size
        if self._table is not None and (self.has_more or (self.is_stuck and self._window > 0)):
            self._table.resume(self)

    def ask(self, ask: int, settlements: Sequence[Settlement]) -> None:
        """Settle records, and tell the sink once all is committed."""
        answers: list[Settled | None] = [None] * len(settlements)
        left = len(settlements)

        def answer(at: int, settled: Settled) -> None:
            nonlocal left
            answers[at] = settled
            left -= 1
            if not left:
                self.sink.told(ask, [one for one in answers if one is not None])

        table = self._table
        if not settlements:
            self.sink.told(ask, ())
            return
        for at, one in enumerate(settlements):
            refusal = fault(one, len(settlements))
            if refusal is None and (table is None or self._is_gone):
                gone = NotLeader("this member is not attached here any more")
                refusal = Settled(0, gone.code, str(gone))
            if refusal is not None:
                answer(at, refusal)
            elif table is not None:
                table.settle(
                    self.membership.member,
                    one,
                    lambda settled, at=at: answer(at, settled),  # type: ignore[misc]
                )

    def detach(self, *, lost: bool) -> None:
        """Leave; nothing more is sent."""
        if not self._is_gone:
            self._is_gone = True
            self._lots.clear()
            if self._table is not None:
                self._table.leave(self, lost=lost)

    def orphan(self) -> None:
        """Hear that the agent cannot be reached: it may come back for a while."""
        if not self._is_gone:
            self._lots.clear()
            if self._table is None:
                self._is_gone = True  # it has not begun yet
            else:
                self._table.orphan(self)

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


def fault(settlement: Settlement, count: int) -> Settled | None:
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
