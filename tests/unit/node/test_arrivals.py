"""What a replica saw coming lately is not old, whatever its append time says."""

from __future__ import annotations

from angarium.ids import Offset
from angarium.node.arrivals import NOTES_PER_AGE, Arrivals

AGE = 64_000


def test_what_came_since_is_young_and_grows_old() -> None:
    arrivals = Arrivals()
    for moment in range(0, 3 * AGE, AGE // NOTES_PER_AGE):
        arrivals.note(Offset(moment), is_full=True, steady=moment, age=AGE)
        young = arrivals.young_from(steady=moment, age=AGE)
        assert young == max(moment - AGE, 0)


def test_few_notes_are_kept_however_often_it_is_looked_at() -> None:
    arrivals = Arrivals()
    for moment in range(0, 3 * AGE, 7):
        arrivals.note(Offset(moment), is_full=True, steady=moment, age=AGE)
        young = arrivals.young_from(steady=moment, age=AGE)
        assert young is not None
        assert 0 <= young - max(moment - AGE, 0) <= AGE // NOTES_PER_AGE + 7
    assert len(arrivals._notes) <= NOTES_PER_AGE + 1


def test_what_a_new_replica_is_brought_is_not_young() -> None:
    arrivals = Arrivals()
    arrivals.note(Offset(0), is_full=False, steady=0, age=AGE)
    arrivals.note(Offset(500), is_full=False, steady=10, age=AGE)
    assert arrivals.young_from(steady=10, age=AGE) is None
    arrivals.note(Offset(900), is_full=True, steady=20, age=AGE)
    assert arrivals.young_from(steady=20, age=AGE) == 900


def test_what_came_while_a_replica_was_away_is_young_to_it() -> None:
    arrivals = Arrivals()
    arrivals.note(Offset(500), is_full=False, steady=0, age=AGE)
    arrivals.note(Offset(900), is_full=True, steady=20, age=AGE)
    assert arrivals.young_from(steady=20, age=AGE) == 500


def test_a_partition_that_begins_is_young_from_its_beginning() -> None:
    arrivals = Arrivals()
    arrivals.note(Offset(0), is_full=True, steady=0, age=AGE)
    assert arrivals.young_from(steady=AGE // 2, age=AGE) == 0
