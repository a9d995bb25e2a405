"""When connections are refused so that the log keeps descriptors."""

from __future__ import annotations

import pytest

from angarium.wire.descriptors import Descriptors


@pytest.mark.parametrize(
    ("number", "is_short", "is_gone"),
    [
        (0, False, False),
        (299, False, False),
        (300, True, False),
        (349, True, False),
        (350, True, True),
        (399, True, True),
    ],
)
def test_the_number_of_the_next_descriptor_tells_how_many_are_left(
    number: int, is_short: bool, is_gone: bool
) -> None:
    descriptors = Descriptors(400, lambda: number)
    assert (descriptors.are_short, descriptors.are_gone) == (is_short, is_gone)
    assert bool(descriptors.reasons()) is is_short


def test_where_there_is_none_at_all_they_are_gone() -> None:
    def refuse() -> int:
        raise OSError(24, "Too many open files")

    descriptors = Descriptors(400, refuse)
    assert descriptors.are_short
    assert descriptors.are_gone
    (reason,) = descriptors.reasons()
    assert "of 400 descriptors (ulimit -n) it keeps the last 100" in reason


def test_the_reserve_is_bounded() -> None:
    assert Descriptors(65_536, lambda: 0).reserved == 1_024
    assert Descriptors(64, lambda: 0).reserved == 16
