"""What was said about the records of one partition, on its way to the broker.

Settlements gather while others are under way: at most one frame per partition waits for its
answer, and whatever is said meanwhile shares the next one. So a consumer that acknowledges record
by record pays for one commit per round trip, and a partition without a leader holds up no other.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future as BlockingFuture
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.api import Settlement, Verb
from angarium.client.groups.spans import Spans, count_in, halves, offsets_in, overlap, spans_of
from angarium.errors import AngariumError, GroupFenced
from angarium.ids import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.client.groups.loans import Loan

FRAME_BYTES: Final = 128 * 1024
"""About how much of settlements travels in one frame; more is left for the next one."""

ACKS_PER_SETTLEMENT: Final = 4_096
"""Acknowledgements of one delivery that travel as one settlement; more become a second one."""

REASON_CHARACTERS_MAX: Final = 500
"""How much of a nack's reason is kept; the rest is cut off."""

_NUMBER_BYTES: Final = 9
_SETTLEMENT_BYTES: Final = 64


@dataclass(slots=True, eq=False)
class Said:
    """One thing said about records of one loan."""

    loan: Loan
    verb: Verb
    ranges: Spans
    delay_ms: int | None = None
    reason: str = ""

    @property
    def goes_back(self) -> bool:
        """Whether the records are to come again."""
        return self.verb in (Verb.NACK, Verb.RELEASE, Verb.REJECT)

    @property
    def size(self) -> int:
        """About how many bytes it takes on its way."""
        return _SETTLEMENT_BYTES + _NUMBER_BYTES * len(self.ranges) + 4 * len(self.reason)

    def halves(self) -> list[Said]:
        """Return it cut in two, so that what is refused can be told from what is not."""
        return [
            Said(self.loan, self.verb, half, self.delay_ms, self.reason)
            for half in halves(self.ranges)
        ]


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who wants to hear what became of something; about all of it if no loan is named."""

    future: asyncio.Future[None] | BlockingFuture[None]
    loan: Loan | None = None
    ranges: Spans = ()

    def error_in(self, refused: Iterable[tuple[Said, AngariumError]]) -> AngariumError | None:
        """Return the error that concerns this one, if there is one."""
        for said, error in refused:
            if said.loan is self.loan and overlap(said.ranges, self.ranges):
                return error
        return None


@dataclass(slots=True, eq=False)
class Flight:
    """Settlements that are under way together, until each has its final answer."""

    said: list[Said]
    """What has no final answer yet."""
    loans: list[Loan]
    rewinds: list[int]
    deadline: float
    waiters: list[Waiter] = field(default_factory=list)
    refused: list[tuple[Said, AngariumError]] = field(default_factory=list)
    attempts: int = 0

    def settlements(self, partition: LentPartition) -> tuple[Settlement, ...]:
        """Return it as it travels."""
        return tuple(
            Settlement(
                partition.topic,
                partition.number,
                said.verb,
                said.ranges,
                said.delay_ms,
                said.reason,
                # What was delivered before the group was moved is not ours to settle any more.
                generation=Index(said.loan.generation) if said.loan.generation else None,
            )
            for said in self.said
        )


class LentPartition:
    """One partition of a consumer: its loans, and what is to be said about them."""

    def __init__(
        self,
        topic: str,
        number: int,
        *,
        group: str,
        is_ordered: bool,
        call: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        self.topic = topic
        self.number = number
        self.group = group
        self.is_ordered = is_ordered
        """In a stream group: a record that fails takes back all that lie behind it."""
        self.loans: dict[int, Loan] = {}
        """By the number of their delivery, the oldest first."""
        self.flight: Flight | None = None
        self.now = now
        """The keeper's clock."""
        self._call = call
        self._noted: list[Loan] = []
        self._said: list[Said] = []
        self._waiters: list[Waiter] = []
        self._rewinds: list[int] = []
        """In a stream group: where the broker is asked to go back to, and has not answered."""
        # Not taken by those who acknowledge without waiting: what they touch needs none.
        self._lock = threading.Lock()

    # --- the user's side: any thread ------------------------------------------------------------

    def note(self, loan: Loan) -> None:
        """Hear that a loan has acknowledgements to send."""
        self._noted.append(loan)
        self._call()

    def say(self, said: Said) -> None:
        """Send this soon."""
        if said.ranges:
            said.reason = said.reason[:REASON_CHARACTERS_MAX]
            if self.is_ordered and said.goes_back:
                self._rewinds.append(said.ranges[0])
                self._withdraw(said.ranges[0])
            self._said.append(said)
            self._call()

    def ack_through(self, offset: int) -> None:
        """Acknowledge a record and all on loan below it."""
        for loan in list(self.loans.values()):
            if loan.ranges[0] <= offset:
                loan.open(offsets_in(loan.ranges))
                for one in sorted(loan.left or ()):
                    if one > offset:
                        break
                    loan.ack(one)

    async def hear(
        self, say: Callable[[], object], loan: Loan | None = None, ranges: Spans = ()
    ) -> None:
        """Say something, and wait until all that was said by then has its answer.

        Raises the answer about these records if it is an error.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._enlist(Waiter(future, loan, ranges), say):
            await future

    def hear_blocking(
        self, say: Callable[[], object], loan: Loan | None = None, ranges: Spans = ()
    ) -> None:
        """Do the same in a thread without an event loop."""
        future: BlockingFuture[None] = BlockingFuture()
        if self._enlist(Waiter(future, loan, ranges), say):
            future.result()

    @property
    def is_quiet(self) -> bool:
        """Whether everything that was said has its answer."""
        return not self._noted and not self._said and self.flight is None

    def _enlist(self, waiter: Waiter, say: Callable[[], object]) -> bool:
        """Say something and wait in line; False if there is nothing to wait for."""
        with self._lock:
            # In one step: otherwise the answer could come before anybody waits for it.
            say()
            if self._noted or self._said:
                self._waiters.append(waiter)
            elif self.flight is not None:
                self.flight.waiters.append(waiter)
            else:
                return False
        self._call()
        return True

    # --- the keeper's side ------------------------------------------------------------------------

    def is_stale(self, offset: int) -> bool:
        """Tell whether a delivery that begins here was sent before the broker went back.

        What it sends afterwards begins where it went back to, or comes after its answer.
        """
        return any(rewind < offset for rewind in self._rewinds)

    def board(self, deadline: float) -> Flight | None:
        """Return what was said since the last flight, as the next one; None if it is nothing."""
        with self._lock:
            if self.flight is not None or not (self._noted or self._said):
                return self.flight
            said = self._gathered()
            self.flight = Flight(
                said,
                loans=list({id(one.loan): one.loan for one in said}.values()),
                rewinds=[one.ranges[0] for one in said if self.is_ordered and one.goes_back],
                deadline=deadline,
            )
            if not self._noted and not self._said:
                # Those who wait for what is left behind wait for the next one.
                self.flight.waiters, self._waiters = self._waiters, []
            return self.flight

    def answer(self, error_of: Iterable[AngariumError | None]) -> bool:
        """Take the broker's answers to the present flight; False if some are to be sent again."""
        flight = self.flight
        assert flight is not None
        again: list[Said] = []
        for said, error in zip(flight.said, error_of, strict=True):
            if error is None:
                continue
            if error.retriable:
                again.append(said)
            elif isinstance(error, GroupFenced) and count_in(said.ranges) > 1:
                # One record whose lease ended must not drag down those that came with it.
                again += said.halves()
            else:
                flight.refused.append((said, error))
        flight.said = again
        return not again

    def land(self) -> list[tuple[Said, AngariumError]]:
        """End the present flight, tell those who wait, and return what nobody was told of."""
        with self._lock:
            flight, self.flight = self.flight, None
        assert flight is not None
        for rewind in flight.rewinds:
            self._rewinds.remove(rewind)
        for said, _ in flight.refused:
            if said.verb is Verb.EXTEND:
                said.loan.lost.update(offsets_in(said.ranges))
        told = [(one, one.error_in(flight.refused)) for one in flight.waiters]
        _tell(told)
        heard = {id(one.loan) for one, error in told if error is not None}
        self._prune(flight.loans)
        return [
            (said, error)
            for said, error in flight.refused
            if said.verb is not Verb.EXTEND and id(said.loan) not in heard
        ]

    def unsettled(self, loan: Loan) -> Spans:
        """Return all of a loan that the broker has not confirmed as settled."""
        with self._lock:
            said = [*self._said, *(self.flight.said if self.flight is not None else ())]
            offsets = set(offsets_in(loan.remaining())) | set(loan.acked)
        for one in said:
            if one.loan is loan:
                offsets.update(offsets_in(one.ranges))
        return spans_of(offsets)

    def _gathered(self) -> list[Said]:
        found: list[Said] = []
        size = 0
        while self._noted and size < FRAME_BYTES:
            loan = self._noted[0]
            # First this, then the list: an acknowledgement in between notes the loan again.
            loan.is_noted = False
            offsets = loan.take_acked(ACKS_PER_SETTLEMENT)
            if offsets:
                found.append(Said(loan, Verb.ACK, spans_of(offsets)))
                size += found[-1].size
            if not loan.acked or loan.is_noted:
                del self._noted[0]
            else:
                loan.is_noted = True
        while self._said and size < FRAME_BYTES:
            found.append(self._said.pop(0))
            size += found[-1].size
        return found

    def _withdraw(self, offset: int) -> None:
        for loan in list(self.loans.values()):
            loan.withdraw_from(offset)
            if loan.is_over:
                self.loans.pop(loan.serial, None)

    def _prune(self, loans: Iterable[Loan]) -> None:
        waiting = {id(said.loan) for said in list(self._said)}
        for loan in loans:
            if loan.is_over and id(loan) not in waiting:
                self.loans.pop(loan.serial, None)


_Heard: TypeAlias = "list[tuple[asyncio.Future[None], AngariumError | None]]"


def _tell(heard: list[tuple[Waiter, AngariumError | None]]) -> None:
    """Tell those who wait, each in its own thread, in one go per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, _Heard] = {}
    for waiter, error in heard:
        future = waiter.future
        if isinstance(future, asyncio.Future):
            by_loop.setdefault(future.get_loop(), []).append((future, error))
        elif error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
    for loop, mine in by_loop.items():
        # A loop that has been closed has nobody who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(heard: _Heard) -> None:
    for future, error in heard:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
