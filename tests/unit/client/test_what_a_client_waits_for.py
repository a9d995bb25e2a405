"""Whoever waits for a client hears why, once it takes longer than an election."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from angarium.client.waiting import REASONS_MAX, TELL_AFTER_S, TELL_AGAIN_S, Waiting
from angarium.errors import AngariumError, NotLeader, Unreachable

if TYPE_CHECKING:
    import pytest

GONE = NotLeader("partition 0 of orders has 1 of 3 replicas")


def test_a_moment_is_not_worth_a_word_and_a_reason_is_told_once() -> None:
    told: list[AngariumError] = []
    waiting = Waiting(told.append)
    waiting.because(NotLeader("an election"), since=100, now=100 + TELL_AFTER_S - 0.1)
    assert not told
    for tenth in range(20, 200):
        waiting.because(GONE, since=100, now=100 + tenth / 10)
    assert told == [GONE]
    other = Unreachable("no node can be reached")
    waiting.because(other, since=100, now=121)
    assert told == [GONE, other]
    waiting.because(GONE, since=100, now=102 + TELL_AGAIN_S)
    assert told == [GONE, other, GONE], "it still holds"


def test_many_partitions_with_the_same_trouble_are_not_all_told() -> None:
    told: list[AngariumError] = []
    waiting = Waiting(told.append)
    for number in range(100):
        waiting.because(NotLeader(f"partition {number}"), since=0, now=10)
    assert len(told) == REASONS_MAX


def test_without_anybody_to_tell_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="angarium.client.waiting"):
        Waiting().because(GONE, since=0, now=3)
    assert "partition 0 of orders has 1 of 3 replicas" in caplog.text


def test_a_callback_that_fails_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    def fail(why: AngariumError) -> None:
        raise ValueError(why)

    Waiting(fail).because(GONE, since=0, now=3)
    assert "the callback for what is waited for failed" in caplog.text
