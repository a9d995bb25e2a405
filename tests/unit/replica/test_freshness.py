"""How stale a replica may say to be."""

from __future__ import annotations

from angarium.replica.freshness import MARKS_MAX, Freshness


def test_a_replica_that_never_heard_from_a_leader_does_not_know() -> None:
    assert Freshness().staleness(now=5, end=100) is None


def test_staleness_counts_from_the_question_not_from_the_answer() -> None:
    fresh = Freshness()
    fresh.note(asked=1_000, end=7)
    assert fresh.staleness(now=1_400, end=7) == 400


def test_an_answer_counts_once_the_replica_has_what_it_speaks_of() -> None:
    fresh = Freshness()
    fresh.note(asked=1_000, end=7)
    fresh.note(asked=2_000, end=9)
    assert fresh.staleness(now=2_100, end=6) is None
    assert fresh.staleness(now=2_200, end=8) == 1_200
    assert fresh.staleness(now=2_300, end=9) == 300


def test_an_answer_to_an_older_question_does_not_make_it_staler() -> None:
    fresh = Freshness()
    fresh.note(asked=2_000, end=7)
    fresh.note(asked=1_000, end=7)
    assert fresh.staleness(now=2_500, end=7) == 500


def test_answers_that_are_waited_for_are_bounded() -> None:
    fresh = Freshness()
    for number in range(MARKS_MAX + 1):
        fresh.note(asked=number, end=1_000 + number)
    assert fresh.staleness(now=100, end=1_000) is None, "the oldest was forgotten"
    assert fresh.staleness(now=100, end=1_001) == 99
