"""A restored retry waits no longer than it did where the backup was made."""

from __future__ import annotations

import pytest

from angarium.api import GroupConfig
from angarium.api.backups import KeptAttempt, KeptPosition
from angarium.ids import Index, Micros, Offset
from angarium.kinds import GroupKind
from angarium.machine.outcomes import Positioned
from angarium.service.backups import _retry

NOW = Micros(1_700_000_000_000_000)
HOUR = 3_600_000_000
CONFIG = GroupConfig(backoff_max_ms=5_000)


@pytest.mark.parametrize(
    ("not_before", "delay", "waits"),
    [
        pytest.param(NOW + HOUR, 2_000_000, 2_000_000, id="the clock was ahead"),
        pytest.param(NOW + 1_000_000, 2_000_000, 1_000_000, id="a part of it has passed"),
        pytest.param(NOW + HOUR, None, 5_000_000, id="a backup of an earlier release"),
    ],
)
def test_it_is_bounded_by_its_delay(not_before: int, delay: int | None, waits: int) -> None:
    kept = KeptPosition(group="g", kind=GroupKind.QUEUE, config=CONFIG, floor=Offset(0))
    attempt = KeptAttempt(Offset(3), 2, Micros(not_before), "because", delay)
    opened = Positioned(Offset(0), Index(7))
    change = _retry(kept, attempt, opened, now=NOW)
    assert (change.offset, change.attempts, change.generation) == (3, 2, 7)
    assert change.not_before == NOW + waits
    assert change.delay == (5_000_000 if delay is None else delay)
