"""Who guesses is slowed down, and nobody else is."""

from __future__ import annotations

import pytest

from angarium.errors import LimitExceeded
from angarium.security import slowing as slowing_page
from angarium.security.slowing import Slowing, source_of


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slowing(clock: Clock) -> Slowing:
    return Slowing(clock=clock)


def is_allowed(slowing: Slowing, source: str, name: str, *, is_costly: bool = False) -> bool:
    try:
        slowing.check(source, name, is_costly=is_costly)
    except LimitExceeded:
        return False
    return True


def test_a_few_mistakes_cost_nothing_and_more_cost_ever_longer_pauses(
    slowing: Slowing, clock: Clock
) -> None:
    for _ in range(5):
        assert is_allowed(slowing, "10.0.0.1", "alice")
        slowing.failed("10.0.0.1", "alice")
    assert is_allowed(slowing, "10.0.0.1", "alice")
    pauses = []
    for _ in range(8):
        slowing.failed("10.0.0.1", "alice")
        begun = clock.now
        while not is_allowed(slowing, "10.0.0.1", "alice"):
            clock.now += 0.25
        pauses.append(clock.now - begun)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 16, 16]


def test_a_success_forgives(slowing: Slowing) -> None:
    for _ in range(5):
        slowing.failed("10.0.0.1", "alice")
    slowing.succeeded("10.0.0.1", "alice")
    slowing.failed("10.0.0.1", "alice")
    assert is_allowed(slowing, "10.0.0.1", "alice")


def test_others_at_the_same_source_are_not_concerned(slowing: Slowing) -> None:
    for _ in range(10_000):
        slowing.failed("10.0.0.1", "mallory")
    assert not is_allowed(slowing, "10.0.0.1", "mallory")
    assert is_allowed(slowing, "10.0.0.1", "alice")


def test_costly_checks_are_slowed_for_a_source_that_tries_many_names(slowing: Slowing) -> None:
    slowing.succeeded("10.0.0.1", "alice")
    for number in range(100):
        slowing.failed("10.0.0.1", f"user-{number}")
    assert not is_allowed(slowing, "10.0.0.1", "user-1000", is_costly=True)
    assert is_allowed(slowing, "10.0.0.1", "user-1000")
    assert is_allowed(slowing, "10.0.0.1", "alice", is_costly=True)
    assert is_allowed(slowing, "10.0.0.2", "user-1000", is_costly=True)


def test_guessing_from_everywhere_does_not_keep_the_owner_out(slowing: Slowing) -> None:
    slowing.succeeded("10.9.9.9", "alice")
    for number in range(200):
        slowing.failed(f"10.1.0.{number}", "alice")
    assert not is_allowed(slowing, "10.2.0.1", "alice")
    assert is_allowed(slowing, "10.9.9.9", "alice")


def test_failures_are_forgiven_after_a_while(slowing: Slowing, clock: Clock) -> None:
    for _ in range(50):
        slowing.failed("10.0.0.1", "alice")
    clock.now += slowing_page.FORGIVEN_AFTER_S
    slowing.failed("10.0.0.1", "alice")
    assert is_allowed(slowing, "10.0.0.1", "alice")


def test_the_tables_are_bounded(slowing: Slowing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slowing_page, "KEPT_MAX", 100)
    for number in range(1_000):
        slowing.failed(f"10.0.{number // 250}.{number % 250}", f"user-{number}")
        slowing.succeeded("10.0.0.1", f"good-{number}")
    tables = (slowing._pairs._failures, slowing._names._failures, slowing._proven)
    assert all(len(table) <= 100 for table in tables)


def test_a_network_of_ipv6_is_one_source() -> None:
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:1")
    assert source_of("2001:db8::1") != source_of("2001:db8:0:1::1")
    assert source_of("::ffff:10.0.0.1") == source_of("10.0.0.1") == "10.0.0.1"
    assert source_of("a socket") == "a socket"
