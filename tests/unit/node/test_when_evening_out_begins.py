"""Calm: how long every node has to be there, and the same, before something begins by itself."""

from __future__ import annotations

from angarium.ids import Micros
from angarium.node.balance import Calm

FIRST, SECOND = Micros(5), Micros(6)


def _look(calm: Calm, now: float, *, changed_at: Micros = FIRST, away: bool = False) -> float:
    return calm.look(changed_at=changed_at, is_anybody_away=away, now=now)


def test_it_waits_from_the_first_look_on() -> None:
    calm = Calm(wait=60)
    assert _look(calm, 100) == 60
    assert _look(calm, 130) == 30
    assert _look(calm, 160) == 0
    assert _look(calm, 900) == 0


def test_another_change_and_a_node_that_is_away_begin_the_wait_anew() -> None:
    calm = Calm(wait=60)
    _look(calm, 100)
    assert _look(calm, 159, changed_at=SECOND) == 60
    assert _look(calm, 218, changed_at=SECOND, away=True) > 0
    assert _look(calm, 219, changed_at=SECOND) == 59
    assert _look(calm, 278, changed_at=SECOND) == 0


def test_who_leads_anew_has_seen_nothing_yet() -> None:
    calm = Calm(wait=60)
    _look(calm, 100)
    calm.forget()
    assert _look(calm, 500) == 60


def test_without_a_wait_it_still_waits_for_who_is_away() -> None:
    calm = Calm(wait=0)
    assert _look(calm, 1) == 0
    assert _look(calm, 2, away=True) > 0
    assert _look(calm, 3) == 0


def test_a_change_that_is_done_with_is_no_other_change() -> None:
    calm = Calm(wait=60)
    _look(calm, 100)
    assert _look(calm, 160) == 0
    assert _look(calm, 161, changed_at=Micros(0)) == 0
    assert _look(calm, 162) == 60, "the next one is, also at the same time by a clock that stands"
    assert _look(calm, 200, changed_at=Micros(0), away=True) > 0
    assert _look(calm, 201, changed_at=Micros(0)) == 59
