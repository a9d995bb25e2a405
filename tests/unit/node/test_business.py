"""How busy a thread is: what it did and what it waited for a processor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.node.business import RELAXED, Business, ThreadTime, pressure

if TYPE_CHECKING:
    from collections.abc import Callable


class Told(ThreadTime):
    """As much time at work as a test says."""

    def __init__(self) -> None:
        self.worked = 5.0

    def seconds(self) -> float:
        return self.worked

    def close(self) -> None:
        self.worked = -1.0


def clock(*moments: float) -> Callable[[], float]:
    return iter(moments).__next__


def test_a_share_is_of_the_time_since_the_last_one() -> None:
    told = Told()
    business = Business(told, now=clock(100.0, 100.2, 100.4, 104.4))
    told.worked += 0.19
    assert business.share() == pytest.approx(0.95)
    assert business.share() == 0.0
    told.worked += 1.0
    assert business.share() == pytest.approx(0.25)


def test_a_share_is_never_above_one_however_clocks_disagree() -> None:
    told = Told()
    business = Business(told, now=clock(1.0, 1.0))
    told.worked += 0.001
    assert business.share() == 1.0


def test_what_is_measured_is_given_back() -> None:
    told = Told()
    Business(told, now=clock(0.0)).close()
    assert told.worked == -1.0


def test_without_the_kernels_figures_the_time_that_it_ran_has_to_do() -> None:
    ran = ThreadTime("/proc/there is no such file")
    before = ran.seconds()
    sum(range(1_000_000))
    assert 0.0 < before < ran.seconds()
    ran.close()


def test_pressure_begins_where_a_loop_no_longer_keeps_up() -> None:
    assert pressure(0.0) == pressure(RELAXED) == 0.0
    assert 0.0 < pressure((RELAXED + 1) / 2) < 1.0
    assert pressure(1.0) == 1.0
