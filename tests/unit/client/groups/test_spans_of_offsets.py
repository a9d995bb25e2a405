"""Ranges of offsets say the same as the sets of offsets that they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from angarium.client.groups.spans import (
    below,
    contains,
    count_in,
    halves,
    offsets_in,
    overlap,
    spans_of,
)

SETS = st.sets(st.integers(0, 200), max_size=60)


@given(SETS)
def test_ranges_hold_exactly_their_offsets(offsets: set[int]) -> None:
    spans = spans_of(offsets)
    assert list(offsets_in(spans)) == sorted(offsets)
    assert count_in(spans) == len(offsets)
    assert list(spans) == sorted(set(spans)), "ranges neither touch nor overlap"


@given(SETS, st.integers(0, 200))
def test_what_lies_below_or_in_them(offsets: set[int], place: int) -> None:
    spans = spans_of(offsets)
    assert set(offsets_in(below(spans, place))) == {one for one in offsets if one < place}
    assert contains(spans, place) == (place in offsets)


@given(SETS, SETS)
def test_what_two_have_in_common(some: set[int], others: set[int]) -> None:
    assert overlap(spans_of(some), spans_of(others)) == bool(some & others)


@given(SETS.filter(lambda offsets: len(offsets) > 1))
def test_halves_make_the_whole_and_neither_is_empty(offsets: set[int]) -> None:
    lower, upper = halves(spans_of(offsets))
    assert sorted([*offsets_in(lower), *offsets_in(upper)]) == sorted(offsets)
    assert abs(count_in(lower) - count_in(upper)) <= 1
