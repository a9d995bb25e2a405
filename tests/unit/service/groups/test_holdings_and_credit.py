"""What an agent knows of its consumer: what is on loan, and how its credit is spread."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from angarium.api import Settlement, Verb
from angarium.lending.flat import records_in, tightened, without
from angarium.service.groups.credit import spread
from angarium.service.groups.holdings import Holdings


@st.composite
def flat_ranges(draw: st.DrawFn) -> tuple[int, ...]:
    bounds = draw(st.lists(st.integers(0, 5_000), unique=True, max_size=12).map(sorted))
    return tuple(bounds[: len(bounds) & -2])


def members(ranges: tuple[int, ...]) -> set[int]:
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    return {offset for start, end in pairs for offset in range(start, end)}


@given(st.lists(st.tuples(st.booleans(), flat_ranges(), st.integers(1, 3)), max_size=8))
def test_holdings_are_a_set_of_offsets_with_attempts(
    steps: list[tuple[bool, tuple[int, ...], int]],
) -> None:
    holdings, model = Holdings(), dict[int, int]()
    for is_lent, ranges, attempt in steps:
        if is_lent:
            holdings.add(ranges, attempt)
            model |= dict.fromkeys(members(ranges), attempt)
        else:
            holdings.remove(ranges)
            for offset in members(ranges):
                model.pop(offset, None)
        assert holdings.count == len(model)
        told = {o: attempt for s, e, attempt in holdings.held() for o in range(s, e)}
        assert told == model


def test_a_cumulative_acknowledgement_ends_everything_below() -> None:
    holdings = Holdings()
    holdings.add((5_000, 9_000, 10_000, 10_010), 1)
    settlement = Settlement("t", 0, Verb.ACK, (10_004, 10_005), cumulative=True)
    holdings.settled(settlement)
    assert holdings.held() == ((10_005, 10_010, 1),)


@given(flat_ranges(), flat_ranges())
def test_without_is_the_difference_of_sets(ranges: tuple[int, ...], gone: tuple[int, ...]) -> None:
    left = without(ranges, gone)
    assert members(left) == members(ranges) - members(gone)
    assert records_in(left) == len(members(left))
    assert list(left) == sorted(left)


@given(st.lists(st.integers(0, 40), unique=True, min_size=1).map(sorted))
def test_single_offsets_that_follow_each_other_become_ranges(offsets: list[int]) -> None:
    tight = tightened(tuple(bound for one in offsets for bound in (one, one + 1)))
    assert members(tight) == set(offsets)
    assert len(set(tight)) == len(tight), "no two ranges touch"


@given(st.integers(1, 10_000), st.lists(st.booleans(), min_size=1, max_size=50))
def test_credit_is_never_overdrawn_unless_it_is_less_than_one_each(
    credit: int, busy: list[bool]
) -> None:
    shares = spread(credit, busy)
    assert len(shares) == len(busy)
    assert min(shares) >= 1
    assert sum(shares) <= max(credit, len(busy))
    if any(busy) and not all(busy):
        assert min(s for s, b in zip(shares, busy, strict=True) if b) >= max(
            s for s, b in zip(shares, busy, strict=True) if not b
        )
