"""Which publishes of one turn of the loop share an entry."""

from __future__ import annotations

from angarium.modes import DeliveryMode
from angarium.node.gathering import ENTRY_BYTES, shared_entries
from angarium.replica.acks import Publishing


def publishing(*sizes: int) -> Publishing:
    return Publishing([bytearray(size) for size in sizes], DeliveryMode.CONSISTENT, lambda _: None)


def test_small_publishes_share_one_entry() -> None:
    requests = [publishing(100, 200), publishing(300), publishing(400)]
    assert shared_entries(requests) == [requests]


def test_an_entry_ends_where_the_next_publish_would_make_it_too_large() -> None:
    half = ENTRY_BYTES // 2
    requests = [publishing(half), publishing(half), publishing(1), publishing(2)]
    assert shared_entries(requests) == [requests[:2], requests[2:]]


def test_a_publish_larger_than_an_entry_has_one_of_its_own() -> None:
    requests = [publishing(1), publishing(ENTRY_BYTES, 5), publishing(2)]
    assert shared_entries(requests) == [requests[:1], requests[1:2], requests[2:]]


def test_nothing_makes_no_entry() -> None:
    assert shared_entries([]) == []
