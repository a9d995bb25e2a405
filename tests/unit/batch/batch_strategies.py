"""Any batch there may be, for Hypothesis, and the records it should hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from angarium.batch import AT_ONCE, NEVER, NO_TIMESTAMP, TIME_MAX, Codec, Record
from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from collections.abc import Callable

nullable_bytes = st.none() | st.binary(max_size=40)
header_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
pairs = st.lists(st.tuples(header_names, nullable_bytes), max_size=4).map(tuple)
times = st.integers(0, TIME_MAX)
expiries = st.integers(1, TIME_MAX) | st.just(NEVER)


@st.composite
def columns(draw: Callable[[Any], Any]) -> dict[str, Any]:
    """Arguments for `encode`: any of the columns, of any length."""
    count = draw(st.integers(1, 40))

    def column(items: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | st.lists(items, min_size=count, max_size=count))

    def time(items: st.SearchStrategy[int]) -> Any:
        return draw(st.none() | items | st.lists(items, min_size=count, max_size=count))

    return {
        "values": draw(st.lists(nullable_bytes, min_size=count, max_size=count)),
        "keys": column(nullable_bytes),
        "headers": column(pairs),
        "timestamps": time(times),
        "expires_at": time(expiries),
        "deliver_at": time(times),
        "producer_id": draw(st.integers(0, 2**63 - 1)),
        "epoch": draw(st.integers(0, 2**32 - 1)),
        "sequence": draw(st.integers(0, 2**62)),
        "codec": draw(st.sampled_from(Codec)),
    }


def expected(given_columns: dict[str, Any], *, base: int, append_time: int) -> list[Record]:
    count = len(given_columns["values"])

    def spread(name: str, default: Any) -> list[Any]:
        column = given_columns[name]
        if column is None:
            return [default] * count
        return [column] * count if isinstance(column, int) else column

    return [
        Record(Offset(base + position), key, value, headers, timestamp, Micros(append_time), *rest)
        for position, (key, value, headers, timestamp, *rest) in enumerate(
            zip(
                spread("keys", None),
                given_columns["values"],
                spread("headers", ()),
                spread("timestamps", NO_TIMESTAMP),
                spread("expires_at", NEVER),
                spread("deliver_at", AT_ONCE),
                strict=True,
            )
        )
    ]
