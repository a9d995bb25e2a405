"""Headers added to many records at once: each record keeps its own, whatever they are."""

from __future__ import annotations

from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="the extra angarium[arrow] is not installed")

from angarium.pipelines.headers import HEADERS, joined, same_for_each  # noqa: E402

OLD = [[("a", b"1"), ("a", b"2")], [], None, [("m-from", b"x"), ("b", None)]]
NEW = [[("m-to", b"p")], [("m-to", b"q"), ("z", b"")], [("m-to", b"r")], []]


def maps(rows: list[Any]) -> Any:
    return pa.array(rows, HEADERS)


def test_new_headers_come_behind_the_old_ones_which_may_have_a_name_twice() -> None:
    found = joined(maps(OLD), maps(NEW), replaces="m-").to_pylist()
    assert found == [
        [("a", b"1"), ("a", b"2"), ("m-to", b"p")],
        [("m-to", b"q"), ("z", b"")],
        [("m-to", b"r")],
        [("b", None)],
    ]


def test_a_part_of_a_longer_column_is_joined_like_a_whole_one() -> None:
    old, new = maps(OLD).slice(1, 3), maps([*NEW, [("y", b"y")]]).slice(2, 3)
    assert joined(old, new, replaces="none-").to_pylist() == [
        [("m-to", b"r")],
        [],
        [("m-from", b"x"), ("b", None), ("y", b"y")],
    ]


def test_columns_become_headers_of_every_record() -> None:
    moments = pa.array([5, 6], pa.timestamp("us", tz="UTC"))
    found = same_for_each({"t": pa.array(["x", "y"]), "n": pa.array([1, 22]), "at": moments})
    assert found.type == HEADERS
    assert found.to_pylist() == [
        [("t", b"x"), ("n", b"1"), ("at", b"5")],
        [("t", b"y"), ("n", b"22"), ("at", b"6")],
    ]
