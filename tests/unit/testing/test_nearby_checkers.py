"""What readers at the nearest replica are promised, in histories that break just that."""

from __future__ import annotations

from angarium.ids import NodeId, RaftGroupId
from angarium.modes import DeliveryMode
from angarium.testing.history import Fetch, History, Publish, Result
from angarium.testing.nearby_checkers import (
    c4_no_answer_is_staler_than_allowed,
    c4_readers_see_their_writes,
    c4_reads_are_monotone_per_consumer,
    c4_staleness_is_never_exceeded,
)

GROUP = RaftGroupId(1)
COMMITTED_AT = 1_000


def history(*fetches: Fetch) -> History:
    """Return a history in which ten records were acknowledged at a known time."""
    publish = Publish(
        group=GROUP,
        producer=1,
        epoch=0,
        sequence=0,
        values=(b"x",) * 10,
        mode=DeliveryMode.CONSISTENT,
        invoked=COMMITTED_AT - 10,
        completed=COMMITTED_AT,
        result=Result.OK,
        base_offset=0,
    )
    return History(publishes=[publish], fetches=list(fetches))


def shown(
    end: int,
    *,
    at: int,
    staleness: int | None = None,
    allowed: int | None = None,
    at_least: int = 0,
    node: int = 1,
) -> Fetch:
    return Fetch(
        GROUP,
        NodeId(node),
        at - 10,
        at + 10,
        0,
        (),
        end=end,
        reader="reader-1",
        staleness=staleness,
        staleness_max=allowed,
        at_least=at_least,
        answered=at,
    )


def test_an_answer_may_lack_what_is_younger_than_it_says() -> None:
    assert not list(c4_staleness_is_never_exceeded(history(shown(0, at=1_400, staleness=400))))


def test_an_answer_may_not_lack_what_is_older_than_it_says() -> None:
    (told,) = c4_staleness_is_never_exceeded(history(shown(9, at=1_400, staleness=399)))
    assert "10 was known" in told


def test_what_another_reader_was_shown_counts_as_known() -> None:
    seen, late = shown(12, at=1_100), shown(10, at=1_400, staleness=100, node=2)
    assert list(c4_staleness_is_never_exceeded(history(seen, late)))


def test_an_answer_that_does_not_say_how_stale_it_is_may_be_so() -> None:
    assert not list(c4_staleness_is_never_exceeded(history(shown(0, at=99_000))))


def test_what_the_reader_allows_is_kept() -> None:
    assert not list(
        c4_no_answer_is_staler_than_allowed(history(shown(10, at=5, staleness=5, allowed=5)))
    )
    assert list(
        c4_no_answer_is_staler_than_allowed(history(shown(10, at=5, staleness=6, allowed=5)))
    )
    assert list(c4_no_answer_is_staler_than_allowed(history(shown(10, at=5, allowed=5))))


def test_no_consumer_is_shown_less_than_before() -> None:
    first, second = shown(10, at=1_100), shown(9, at=1_400, node=2)
    (told,) = c4_reads_are_monotone_per_consumer(history(first, second))
    assert "after it had been shown 10" in told
    assert not list(c4_reads_are_monotone_per_consumer(history(second, first)))[1:]


def test_answers_that_overlap_may_come_in_any_order() -> None:
    first, second = shown(10, at=1_100), shown(9, at=1_105, node=2)
    assert not list(c4_reads_are_monotone_per_consumer(history(first, second)))


def test_whoever_names_a_receipt_is_shown_it() -> None:
    assert list(c4_readers_see_their_writes(history(shown(9, at=1_100, at_least=10))))
    assert not list(c4_readers_see_their_writes(history(shown(10, at=1_100, at_least=10))))
