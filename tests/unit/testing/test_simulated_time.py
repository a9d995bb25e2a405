"""Simulated time goes on: a run that would never end is a broken promise, not a hanging test."""

from __future__ import annotations

import pytest

from angarium.testing.sim.clock import EVENTS_AT_ONCE_MAX, Scheduler, Spinning


def test_whatever_calls_itself_without_end_is_found() -> None:
    scheduler = Scheduler(0)

    def spin() -> None:
        scheduler.after(0, spin)

    scheduler.after(5, spin)
    with pytest.raises(Spinning, match="spin"):
        scheduler.run_until(10)


def test_much_work_that_takes_time_is_not() -> None:
    scheduler = Scheduler(0)
    left = EVENTS_AT_ONCE_MAX + 10

    def work() -> None:
        nonlocal left
        left -= 1
        if left:
            scheduler.after(1, work)

    scheduler.after(0, work)
    scheduler.run_until(EVENTS_AT_ONCE_MAX * 2)
    assert not left
