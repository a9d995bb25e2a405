"""A limit of the cluster, divided over its nodes as it is used."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from angarium.security.shares import EQUAL_PART, Use, share_of

LIMIT = 900.0


def shares(*uses: Use) -> list[float]:
    return [share_of(LIMIT, one, [*uses[:at], *uses[at + 1 :]]) for at, one in enumerate(uses)]


def test_one_node_has_all_of_it() -> None:
    assert shares(Use()) == [LIMIT]


def test_where_nothing_is_used_the_shares_are_equal() -> None:
    assert shares(Use(), Use(), Use()) == pytest.approx([300, 300, 300])


def test_who_uses_one_node_alone_has_nearly_all_of_it_there() -> None:
    first, *others = shares(Use(50.0), Use(), Use())
    assert first == pytest.approx(LIMIT * (1 - EQUAL_PART + EQUAL_PART / 3))
    assert others == pytest.approx([LIMIT * EQUAL_PART / 3] * 2)


def test_shares_follow_use() -> None:
    first, second = shares(Use(300.0), Use(100.0))
    assert first / second == pytest.approx((45 + 607.5) / (45 + 202.5))


def test_who_turns_to_another_node_has_its_share_there_within_seconds() -> None:
    """One node was used alone for long; now both are wanted as much as they give."""
    here, there = LIMIT * 0.95, LIMIT * 0.05
    for _ in range(5):
        here, there = shares(Use(here, is_pressed=True), Use(there, is_pressed=True))
    assert there > 0.4 * LIMIT
    assert here + there == pytest.approx(LIMIT)


@given(
    st.lists(
        st.builds(Use, st.floats(0, 1e12), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
@example([Use(0.0), Use(5e-324)])
def test_together_they_are_the_limit_and_nobody_has_nothing(uses: list[Use]) -> None:
    found = shares(*uses)
    assert sum(found) == pytest.approx(LIMIT)
    assert min(found) >= LIMIT * EQUAL_PART / len(uses) * 0.999
