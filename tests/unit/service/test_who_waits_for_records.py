"""Who waits for new records of a partition is known, and forgotten when nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from angarium.ids import RaftGroupId
from angarium.service import fetching
from angarium.service.fetching import READER_S, Fetching

if TYPE_CHECKING:
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics


class Clock:
    """Stands in for the module `time`."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fetching, "time", clock)
    return clock


def told_of(group: int, readers: Fetching) -> RaftGroupId:
    """Let somebody wait for a partition and be told."""
    raft_group = RaftGroupId(group)
    readers.wait(raft_group, lambda: None)
    readers.announce(raft_group)
    return raft_group


def readers() -> Fetching:
    return Fetching(cast("OwnNode", None), cast("Topics", None))


def test_whoever_was_told_lately_counts_as_a_reader_for_a_while(clock: Clock) -> None:
    fetches = readers()
    group = told_of(1, fetches)
    clock.now += READER_S / 2
    assert fetches.has_readers(group)
    clock.now += READER_S / 2
    assert not fetches.has_readers(group)


def test_partitions_that_were_read_once_are_forgotten(clock: Clock) -> None:
    fetches = readers()
    for group in range(1_000):
        told_of(group, fetches)
    clock.now += READER_S
    for _ in range(1_000):
        told_of(1, fetches)
    assert list(fetches._last_read) == [1]


def test_nothing_is_left_of_whoever_stopped_waiting() -> None:
    fetches = readers()
    for group in map(RaftGroupId, range(10)):
        fetches.wait(group, print)
        fetches.stop_waiting(group, print)
        assert not fetches.has_readers(group)
    assert not fetches._waiting
