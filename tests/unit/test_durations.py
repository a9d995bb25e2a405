"""Durations are read alike on the command line, in Spark's options and in pipelines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.durations import UNITS_MS, duration_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("1.5s", 1_500),
        (" 15m ", 900_000),
        ("5min", 300_000),
        ("5 mins", 300_000),
        ("1 hour", 3_600_000),
        ("10 seconds", 10_000),
        ("250 milliseconds", 250),
        ("7d", 604_800_000),
        ("1w", 604_800_000),
        ("2 weeks", 1_209_600_000),
        ("0s", 0),
        ("0.5ms", 0.5),
        ("999999999999999w", 999_999_999_999_999 * 604_800_000),
    ],
)
def test_durations_are_read(text: str, ms: float) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", "ms", "5", "5 ss", "5 moons", "-5s", "PT1H", "5mss", "5 ms s", "1e3s", "5M", ".5s", "٣s"],
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ms(text) is None


@given(st.integers(0, 10**15 - 1), st.sampled_from(sorted(UNITS_MS)))
def test_whole_numbers_stay_exact(number: int, unit: str) -> None:
    assert str(duration_ms(f"{number}{unit}")) == str(number * UNITS_MS[unit])
