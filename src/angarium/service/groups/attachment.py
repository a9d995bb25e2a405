"""One partition of a consumer, as its agent keeps it: attached to its leader.

What the consumer has on loan is known here too, so that a new leader can be told. Settlements that
wait when a leader goes away are said again to the next one if they acknowledge, which is harmless
to repeat; of others it is not known what became of them, and that is what their sender is told.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from angarium.api import Settled, Settlement, Verb
from angarium.errors import GroupFenced, OutcomeUnknown
from angarium.lending.flat import records_in, without
from angarium.lending.lending_limits import STAYS_PER_LEASE
from angarium.lending.ports import Wanted
from angarium.service.groups.holdings import Holdings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import GroupConfig, Start
    from angarium.errors import AngariumError
    from angarium.ids import NodeId, RaftGroupId
    from angarium.kinds import GroupKind
    from angarium.lending.ports import Lending, Opening, Seat
    from angarium.service.groups.posts import Post

ASKS_MAX: Final = 1_024
"""Settlements (each of many records) that wait for one partition's leader. At the limit further
ones are refused with RESOURCE_EXHAUSTED."""

HELD_MAX: Final = 8_192
"""Ranges that a consumer says it holds when it is attached anew. What does not fit has failed."""

STALE_ANSWER_S: Final = 30.0
"""How long such a return may take; nobody waits for it."""

Answers: TypeAlias = "Callable[[Sequence[Settled]], None]"


class _Ask(NamedTuple):
    settlements: tuple[Settlement, ...]
    answer: Answers
    deadline: float


class Keeper(Protocol):
    """What an attachment tells its consumption, and asks of it."""

    def now(self) -> float:
        """Return the event loop's time."""

    def arrived(self, attachment: Attachment) -> None:
        """Hear that records have come."""

    def joined(self, attachment: Attachment, kind: GroupKind, config: GroupConfig) -> None:
        """Hear that the attachment is attached."""

    def left(self, attachment: Attachment, error: AngariumError) -> None:
        """Hear that the attachment's leader let go of it."""

    def freed(self) -> None:
        """Hear that fewer records are on loan."""


class Attachment:
    """One partition of one consumer. Implements `Sink`."""

    def __init__(self, keeper: Keeper, topic: str, partition: int, raft_group: RaftGroupId) -> None:
        self.topic = topic
        self.partition = partition
        self.raft_group = raft_group
        self.arrivals: deque[tuple[Lending, float]] = deque()
        """On loan, and not passed on to the consumer yet; and until when they may stay so."""
        self.waiting = 0
        """Records in `arrivals`."""
        self.holdings = Holdings()
        """Everything on loan, passed on or not."""
        self.credit = 0
        """What the leader may have on loan; what it was last told."""
        self.was_busy = False
        """Whether something came since credit was last spread."""
        self.is_attached = False
        self.node: NodeId | None = None
        """Where it is attached, or on its way there."""
        self.failures = 0
        """Attempts to attach that failed since it last was."""
        self.start: Start | None = None
        """Where the group begins if it has to be opened here; None: where the consumer said."""
        self._keeper = keeper
        self._seat: Seat | None = None
        self._turn = 0
        """Counts the times it was attached: what an earlier leader still says is not heard."""
        self._asks: dict[int, _Ask] = {}
        self._numbers = count(1)

    @property
    def is_seated(self) -> bool:
        """True while it is attached, or on its way there."""
        return self._seat is not None

    @property
    def is_quiet(self) -> bool:
        """True if it is attached, nothing is on loan and nobody waits: there is nothing to do."""
        return self.is_attached and not (self.holdings.count or self._asks or self.was_busy)

    # --- coming and going ---------------------------------------------------------------------

    def attach(
        self, post: Post, node: NodeId, opening: Opening, credit: int, *, may_open: bool
    ) -> None:
        """Take part at the node that leads, saying what the consumer has from before."""
        # What has not been passed on need not be claimed: it comes again.
        for lending, _ in self.arrivals:
            self.holdings.remove(lending.ranges)
        self.arrivals.clear()
        self.waiting = 0
        self._turn += 1
        self.credit = credit
        held = self.holdings.held()[:HELD_MAX]
        if self.start is not None:
            opening = opening._replace(start=self.start)
        wanted = Wanted(self.topic, self.partition, opening, credit, held, may_open=may_open)
        self.node = node
        self._seat = post.attach(wanted, _Hearing(self, self._turn))

    def detach(self, *, lost: bool) -> None:
        """Leave. Callers that wait for an answer are told that it is not known."""
        self._turn += 1
        self.is_attached = False
        self.node = None
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.detach(lost=lost)
        self._give_up(list(self._asks), OutcomeUnknown("the consumer has left"))

    def hear_attached(self, kind: GroupKind, config: GroupConfig) -> None:
        """Hear that it takes part; say again what its last leader may not have heard."""
        self.is_attached = True
        self.failures = 0
        for number, ask in list(self._asks.items()):
            assert self._seat is not None
            self._seat.ask(number, ask.settlements)
        self._keeper.joined(self, kind, config)

    def leave_for(self, error: AngariumError) -> None:
        """Give up a node that leads no more, as if it had said so."""
        seat = self._seat
        if seat is not None:
            seat.detach(lost=False)
            self.hear_dropped(error)

    def hear_dropped(self, error: AngariumError) -> None:
        """Hear that the leader let go."""
        self._seat = None
        self.node = None
        self.is_attached = False
        self._turn += 1
        self.failures += 1
        doubtful = [
            number
            for number, ask in self._asks.items()
            if any(one.verb is not Verb.ACK for one in ask.settlements)
        ]
        self._give_up(doubtful, OutcomeUnknown("the leader changed while it settled"))
        self._keeper.left(self, error)

    # --- records ------------------------------------------------------------------------------

    def hear_lent(self, lending: Lending) -> None:
        """Take records on loan."""
        self.holdings.add(lending.ranges, lending.attempt)
        stale_at = self._keeper.now() + lending.lease_ms / (1_000 * STAYS_PER_LEASE)
        self.arrivals.append((lending, stale_at))
        self.waiting += records_in(lending.ranges)
        self.was_busy = True
        self._keeper.arrived(self)

    def take(self) -> Lending | None:
        """Pass the next records on."""
        if not self.arrivals:
            return None
        lending, _ = self.arrivals.popleft()
        self.waiting -= records_in(lending.ranges)
        if self._seat is not None:
            self._seat.taken(lending.bytes)
        return lending

    def return_stale(self, now: float) -> None:
        """Give back what has waited too long for a consumer that takes nothing."""
        while self.is_attached and self.arrivals and self.arrivals[0][1] <= now:
            lending = self.take()
            assert lending is not None
            back = Settlement(self.topic, self.partition, Verb.RELEASE, lending.ranges)
            self.ask((back,), _ignore, now + STALE_ANSWER_S)

    def hear_withdrawn(self, ranges: tuple[int, ...]) -> None:
        """Hear that records are on loan no more."""
        self.holdings.remove(ranges)
        if self.arrivals:
            kept: deque[tuple[Lending, float]] = deque()
            for lending, stale_at in self.arrivals:
                left = without(lending.ranges, ranges)
                if left:
                    kept.append((lending._replace(ranges=left), stale_at))
                elif self._seat is not None:
                    self._seat.taken(lending.bytes)
            self.arrivals = kept
            self.waiting = sum(records_in(one.ranges) for one, _ in kept)
        self._keeper.freed()

    def allow(self, credit: int) -> None:
        """Have the leader lend no more than so many records."""
        if self._seat is not None and credit != self.credit:
            self.credit = credit
            self._seat.allow(credit)

    # --- settling -----------------------------------------------------------------------------

    def ask(self, settlements: tuple[Settlement, ...], answer: Answers, deadline: float) -> None:
        """Settle records of this partition, now or when there is a leader again."""
        if len(self._asks) >= ASKS_MAX:
            refusal = Settled(
                0, "RESOURCE_EXHAUSTED", "ASKS_MAX: too many settlements wait for the leader"
            )
            answer([refusal] * len(settlements))
            return
        number = next(self._numbers)
        self._asks[number] = _Ask(settlements, answer, deadline)
        if self.is_attached:
            assert self._seat is not None
            self._seat.ask(number, settlements)

    def hear_told(self, number: int, settled: Sequence[Settled]) -> None:
        """Hear what became of settlements."""
        ask = self._asks.pop(number, None)
        if ask is None:
            return
        for settlement, one in zip(ask.settlements, settled, strict=True):
            # What is another's now is as little on loan here as what was settled.
            ended = settlement.verb is not Verb.EXTEND and not one.code
            if ended or one.code == GroupFenced.code:
                self.holdings.settled(settlement)
        self._keeper.freed()
        ask.answer(settled)

    def expire_asks(self, now: float, error: AngariumError) -> None:
        """Give up what nobody has answered in time."""
        if self._asks:
            self._give_up([one for one, ask in self._asks.items() if ask.deadline <= now], error)

    def _give_up(self, numbers: list[int], error: AngariumError) -> None:
        for number in numbers:
            ask = self._asks.pop(number)
            ask.answer([Settled(0, error.code, str(error))] * len(ask.settlements))


class _Hearing:
    """An attachment for one turn: what a leader says after it was left is not heard."""

    __slots__ = ("_attachment", "_turn")

    def __init__(self, attachment: Attachment, turn: int) -> None:
        self._attachment = attachment
        self._turn = turn

    @property
    def _is_on(self) -> bool:
        return self._attachment._turn == self._turn

    def attached(self, kind: GroupKind, config: GroupConfig) -> None:
        if self._is_on:
            self._attachment.hear_attached(kind, config)

    def lent(self, lending: Lending) -> None:
        if self._is_on:
            self._attachment.hear_lent(lending)

    def told(self, ask: int, settled: Sequence[Settled]) -> None:
        if self._is_on:
            self._attachment.hear_told(ask, settled)

    def allowed(self, credit: int) -> None:
        """The leader keeps to it; nothing depends on when."""

    def withdrawn(self, ranges: tuple[int, ...]) -> None:
        if self._is_on:
            self._attachment.hear_withdrawn(ranges)

    def dropped(self, error: AngariumError) -> None:
        if self._is_on:
            self._attachment.hear_dropped(error)


def _ignore(_: Sequence[Settled]) -> None:
    """Nobody waits for it."""
