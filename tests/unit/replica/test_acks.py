"""Who waits for which entry, and what became of what was answered early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import NotLeader, OutcomeUnknown
from angarium.ids import Index, Micros, Offset, Term
from angarium.machine.outcomes import Acknowledged, Appended
from angarium.modes import DeliveryMode
from angarium.replica.acks import Acks, Published

if TYPE_CHECKING:
    from angarium.errors import AngariumError

STORED = Appended(Offset(0), Offset(1), Micros(5))
ANSWER = Published(DeliveryMode.CONSISTENT, Term(2), (STORED,))


class Caller:
    """Somebody who waits."""

    def __init__(self) -> None:
        self.heard: list[Published | AngariumError] = []

    def __call__(self, answer: Published | AngariumError) -> None:
        self.heard.append(answer)


def test_an_answer_waits_for_its_index() -> None:
    acks, caller = Acks(), Caller()
    acks.wait(Index(7), ANSWER, caller)
    acks.applied(Index(6), Term(2))
    assert caller.heard == []
    acks.applied(Index(7), Term(2))
    assert caller.heard == [ANSWER]


def test_another_leaders_entry_at_the_same_index_confirms_nothing() -> None:
    acks, caller = Acks(), Caller()
    acks.wait(Index(7), ANSWER, caller)
    acks.applied(Index(7), Term(3))
    assert isinstance(caller.heard[0], NotLeader)


def test_an_index_that_was_passed_over_confirms_nothing() -> None:
    acks, caller = Acks(), Caller()
    acks.wait(Index(7), ANSWER, caller)
    acks.applied(Index(9), Term(2))
    assert isinstance(caller.heard[0], NotLeader)


def test_whoever_waits_when_leadership_goes_is_told_that_it_is_unknown() -> None:
    acks, caller = Acks(), Caller()
    acks.wait(Index(7), ANSWER, caller)
    acks.abandon()
    assert isinstance(caller.heard[0], OutcomeUnknown)
    assert acks.are_all_answered


def test_an_outcome_only_the_machine_knows_is_filled_in() -> None:
    acks, caller = Acks(), Caller()
    acks.wait(Index(7), Published(DeliveryMode.CONSISTENT, Term(2), ()), caller)
    known = (Acknowledged(Offset(4), 2),)
    acks.applied(Index(7), Term(2), known)
    assert caller.heard == [Published(DeliveryMode.CONSISTENT, Term(2), known)]


def test_early_answers_that_lived_are_no_loss() -> None:
    acks = Acks()
    acks.answered_early(Index(7), Term(2), 3)
    acks.applied(Index(7), Term(2))
    assert acks.eventual_lost == 0


def test_early_answers_that_were_superseded_are_counted() -> None:
    acks = Acks()
    acks.answered_early(Index(7), Term(2), 3)
    acks.applied(Index(7), Term(3))
    assert acks.eventual_lost == 3


def test_early_answers_that_a_snapshot_replaced_are_counted() -> None:
    acks = Acks()
    acks.answered_early(Index(7), Term(2), 3)
    acks.superseded(Index(9))
    assert acks.eventual_lost == 3


def test_the_age_of_the_oldest_entry_bounds_early_answers() -> None:
    acks = Acks()
    assert acks.oldest_age(Micros(1_000)) == 0
    acks.appended(Index(7), Micros(100))
    acks.appended(Index(8), Micros(150))
    assert acks.oldest_age(Micros(1_000)) == 900
    acks.applied(Index(7), Term(2))
    assert acks.oldest_age(Micros(1_000)) == 850
