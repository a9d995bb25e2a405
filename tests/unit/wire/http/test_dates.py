"""Dates in headers are those that the standard library would write."""

from __future__ import annotations

from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from angarium.wire.http.dates import http_date


@given(st.integers(0, 253_402_300_799))
def test_a_date_is_written_as_http_wants_it(seconds: int) -> None:
    assert http_date(seconds + 0.25) == formatdate(seconds, usegmt=True)


def test_a_day_of_one_digit_has_two_places() -> None:
    assert http_date(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT"
