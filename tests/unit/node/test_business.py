"""How busy a thread is: what it did and what it waited for a processor."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from angarium.node.business import RELAXED, Business, pressure

if TYPE_CHECKING:
    import pytest


def test_a_thread_that_works_is_busy_and_one_that_sleeps_is_not() -> None:
    with closing(Business()) as business:
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        worked = business.share()
        time.sleep(0.2)
        slept = business.share()
    # Where the machine is shared with others, a moment may be missing here or too much there.
    assert slept < 0.5 < worked <= 1.0


def test_without_the_kernels_figures_the_time_that_it_ran_has_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr("angarium.node.business.os.open", refuse)
    with closing(Business()) as business:
        sum(range(1_000_000))
        assert 0.0 < business.share() <= 1.0


def test_pressure_begins_where_a_loop_no_longer_keeps_up() -> None:
    assert pressure(0.0) == pressure(RELAXED) == 0.0
    assert 0.0 < pressure((RELAXED + 1) / 2) < 1.0
    assert pressure(1.0) == 1.0
