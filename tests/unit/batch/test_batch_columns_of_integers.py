"""Whole columns judged by arithmetic on one long integer, against a plain loop."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.batch.lanes import always_increases, lies_within, never_decreases

int32s = st.integers(-(2**31), 2**31 - 1)
small = st.integers(-3, 3)
edges = st.sampled_from([0, 1, 2**31 - 1, 2**31 - 2, -1, -(2**31)])


@settings(max_examples=300, deadline=None)
@given(st.lists(int32s | small | edges, min_size=1, max_size=12), st.booleans())
def test_climbing_is_what_a_loop_says_it_is(numbers: list[int], is_sorted: bool) -> None:
    if is_sorted:
        numbers = sorted(numbers)
    column = struct.pack(f"<{len(numbers)}i", *numbers)
    positive = all(number >= 0 for number in numbers)
    pairs = list(pairwise(numbers))
    count = len(numbers)
    assert never_decreases(column, count=count) == (positive and all(a <= b for a, b in pairs))
    assert always_increases(column, count=count) == (positive and all(a < b for a, b in pairs))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 6), max_size=12),
    st.integers(0, 2**63 - 1) | st.integers(0, 4),
    st.integers(0, 2**63 - 1) | st.integers(0, 6),
)
def test_lying_within_is_what_a_loop_says_it_is(numbers: list[int], low: int, high: int) -> None:
    low, high = sorted((low, high))
    column = struct.pack(f"<{len(numbers)}q", *numbers)
    within = all(low <= number <= high for number in numbers)
    assert lies_within(column, count=len(numbers), low=low, high=high) == within


@pytest.mark.parametrize("count", [4095, 4096, 4097, 10_000])
def test_one_wrong_number_in_a_long_column_is_found_wherever_it_is(count: int) -> None:
    numbers = list(range(0, 2 * count, 2))
    times = [10] * count
    for position in (1, count // 2, count - 1):
        wrong = [*numbers[:position], numbers[position] - 3, *numbers[position + 1 :]]
        assert not never_decreases(struct.pack(f"<{count}i", *wrong), count=count)
        late = [*times[:position], 12, *times[position + 1 :]]
        assert not lies_within(struct.pack(f"<{count}q", *late), count=count, low=9, high=11)
    assert always_increases(struct.pack(f"<{count}i", *numbers), count=count)
    assert lies_within(struct.pack(f"<{count}q", *times), count=count, low=9, high=11)
