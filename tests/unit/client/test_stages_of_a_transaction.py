"""What a transaction acknowledges travels in few ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from angarium.client.transactions.stages import _joined

SPANS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 9)).map(lambda one: (one[0], one[0] + one[1]))
)


@given(SPANS)
def test_joined_ranges_hold_the_same_offsets_and_touch_nowhere(
    spans: list[tuple[int, int]],
) -> None:
    joined = _joined([end for span in spans for end in span])
    pairs = list(zip(joined[::2], joined[1::2], strict=True))
    assert {one for start, end in pairs for one in range(start, end)} == {
        one for start, end in spans for one in range(start, end)
    }
    assert joined == sorted(set(joined))
