"""A broker of one node goes by the right time at once after its machine was paused or restored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from angarium import SyncClient, TopicConfig
from angarium.node import timekeeping
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from angarium.ids import Micros

PAUSED_MICROS = 3_600_000_000
WITHIN_S = 60.0


def test_what_is_stored_after_a_pause_has_the_right_time_and_goes_when_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = timekeeping.wall_clock
    # Before the pause the clock says what it said an hour ago; the steady clock stops meanwhile.
    monkeypatch.setattr(timekeeping, "wall_clock", lambda: _earlier(right))
    monkeypatch.setattr("angarium.node.retention.ROUND_S", 0.1)
    with BrokerThread() as broker, SyncClient(*broker.addresses) as client:
        client.create_topic("orders", config=TopicConfig(retention_ms=3_600_000))
        client.publish("orders", b"before")
        monkeypatch.setattr(timekeeping, "wall_clock", right)

        def is_right() -> bool:
            receipt = client.publish("orders", b"after")
            return abs((receipt.append_time or 0) - right()) < PAUSED_MICROS // 2

        _until(is_right, "append times follow the clock")
        # "before" looks an hour old, and perhaps it is.
        assert client.describe_topic("orders").partitions[0].start_offset == 0
        client.alter_topic("orders", config=TopicConfig(retention_ms=1))
        _until(lambda: _is_empty(client), "what is too old by either time is trimmed")


def _earlier(clock: Callable[[], Micros]) -> int:
    return clock() - PAUSED_MICROS


def _is_empty(client: SyncClient) -> bool:
    part = client.describe_topic("orders").partitions[0]
    return part.start_offset == part.end_offset


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)
