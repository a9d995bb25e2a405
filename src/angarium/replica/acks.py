"""Who waits for which entry, and what became of what was answered early.

A publish waits here under the index of its entry until that index is applied. Whether it is *that*
entry which was applied is told by its term: the same index under another term means that another
leader's entry took the place, and the waiting one is definitely not in the log.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from angarium.errors import AngariumError, LayoutChanged, NotLeader, OutcomeUnknown
from angarium.ids import Term
from angarium.machine.outcomes import Outcome, Refused, refused
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import Index, Micros


class Published(msgspec.Struct, frozen=True):
    """What a publisher is told: one outcome per batch, and what the answer is worth."""

    mode: DeliveryMode
    term: Term
    outcomes: tuple[Outcome, ...]
    provisional: bool = False
    """True while only the leader has it: the offsets hold if this leader's log does."""


Reply: TypeAlias = "Callable[[Published | AngariumError], None]"


class Dealt(NamedTuple):
    """By which layout of the topic keys have sent records to a partition.

    Whoever names a layout has heard that it is in force, so every older partition has its fence.
    """

    layout: int
    born: int
    """The layout that the partition came with."""

    def fault(self, fenced: int) -> Refused | None:
        """Say why records are not taken behind the fence of the layout `fenced`, if so."""
        # Since the fence stands others deal the same keys elsewhere, and are read there after what
        # lies before it here. Nothing else may be refused so: whoever is, takes it that whatever
        # of it is still on its way will be refused, too. Planted as fence-not-checked.
        if self.layout >= max(fenced, self.born):
            return None
        return refused(
            LayoutChanged,
            f"dealt by layout {self.layout}; the topic's is {max(fenced, self.born)} by now",
        )


class Publishing(NamedTuple):
    """One caller's batches, how it wants them answered, and whom to answer."""

    batches: Sequence[bytearray]
    """Each in a buffer of its own, which the leader stamps in place."""
    mode: DeliveryMode
    reply: Reply
    dealt: Dealt | None = None
    """Nothing where no key says that the records belong here."""


@dataclass(slots=True)
class _Waiting:
    index: Index
    published: Published
    reply: Reply


@dataclass(slots=True)
class _Early:
    index: Index
    term: Term
    records: int


class Acks:
    """The publishes of one partition that wait for their commit."""

    __slots__ = ("_early", "_oldest", "_waiting", "eventual_lost")

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._early: deque[_Early] = deque()
        self._oldest: deque[tuple[Index, Micros]] = deque()
        self.eventual_lost = 0
        """Records answered in EVENTUAL mode whose entries another leader's superseded."""

    def appended(self, index: Index, now: Micros) -> None:
        """Note when an entry was appended, for the bound on early answers."""
        self._oldest.append((index, now))

    def wait(self, index: Index, published: Published, reply: Reply) -> None:
        """Answer `reply` with `published` once `index` is applied under the same term."""
        self._waiting.append(_Waiting(index, published, reply))

    def answered_early(self, index: Index, term: Term, records: int) -> None:
        """Remember an EVENTUAL answer until it is known whether the entry lived."""
        if records:
            self._early.append(_Early(index, term, records))

    def oldest_age(self, now: Micros) -> int:
        """Return how long the oldest unapplied entry of this leader has been waiting, in µs."""
        return now - self._oldest[0][1] if self._oldest else 0

    def applied(self, index: Index, term: Term, outcomes: tuple[Outcome, ...] = ()) -> None:
        """Answer whoever waited for the entry at `index`, which has `term`.

        `outcomes` are the machine's, for those whose outcome only the machine knows.
        """
        oldest, waiting, early = self._oldest, self._waiting, self._early
        while oldest and oldest[0][0] <= index:
            oldest.popleft()
        while waiting and waiting[0].index <= index:
            done = waiting.popleft()
            # The term tells whose entry it is. Without it whatever another leader puts at the same
            # index would confirm this publish. Planted as another-leaders-entry-confirms-mine.
            if done.index == index and done.published.term == term:
                done.reply(done.published if done.published.outcomes else _told(done, outcomes))
            else:
                # Definite: index and term name an entry (Raft §5.3), and another one is committed
                # here.
                done.reply(
                    NotLeader("another leader's entry was committed instead; nothing was stored")
                )
        while early and early[0].index <= index:
            answered = early.popleft()
            if answered.index == index and answered.term != term:
                self.eventual_lost += answered.records

    @property
    def unanswered(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def are_all_answered(self) -> bool:
        """True while nobody waits."""
        return not self._waiting

    def superseded(self, index: Index) -> None:
        """Count early answers at or below `index`, which a snapshot has replaced unseen.

        The entries may have been the same ones, so this errs on the side of reporting a loss.
        """
        while self._early and self._early[0].index <= index:
            self.eventual_lost += self._early.popleft().records

    def abandon(self) -> None:
        """Leadership is gone: tell those who wait that the outcome is unknown."""
        waiting, self._waiting = self._waiting, deque()
        self._oldest.clear()
        for one in waiting:
            one.reply(OutcomeUnknown("leadership was lost before the entry was known committed"))


def _told(waiting: _Waiting, outcomes: tuple[Outcome, ...]) -> Published:
    return msgspec.structs.replace(waiting.published, outcomes=outcomes)
