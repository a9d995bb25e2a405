"""How late the event loop is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from angarium.node.lag import LoopLag

if TYPE_CHECKING:
    import pytest


def test_a_quantile_is_an_upper_bound_of_what_was_recorded() -> None:
    lag = LoopLag(election_timeout_s=0.5)
    for _ in range(998):
        lag.record(0.0001)
    lag.record(0.1)
    assert lag.quantile(0.5) == 0.0005
    assert 0.1 <= lag.quantile(1.0) < 0.2


def test_old_ticks_fade() -> None:
    lag = LoopLag(election_timeout_s=0.5)
    for _ in range(100):
        lag.record(1.0)
    for _ in range(200_000):
        lag.record(0.0001)
    assert lag.quantile(0.999) == 0.0005


def test_a_loop_too_slow_for_its_elections_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag(election_timeout_s=0.5)
    with caplog.at_level(logging.WARNING):
        for _ in range(4_000):
            lag.record(0.2)
    assert len(caplog.records) == 1
    assert "raise tick_ms" in caplog.text
