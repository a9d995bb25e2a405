"""Who guesses is slowed down, and nobody else is."""

from __future__ import annotations

import random
from typing import Any

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
    return Slowing(clock=clock, chance=lambda: 0.5)


def is_allowed(slowing: Slowing, source: str, name: str, *, is_costly: bool = False) -> bool:
    try:
        slowing.draw(source, name, is_costly=is_costly)
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


def tried(slowing: Slowing, clock: Clock, *, per_s: int, seconds: int, **how: bool) -> int:
    """Guess with ever other names from one source; return how many guesses were checked."""
    checked = 0
    for number in range(per_s * seconds):
        clock.now += 1 / per_s
        if is_allowed(slowing, "10.0.0.1", f"user-{number}", **how):
            checked += 1
            slowing.failed("10.0.0.1", f"user-{number}")
    return checked


@pytest.mark.parametrize(("is_costly", "free", "per_s"), [(False, 50, 20), (True, 20, 2)])
def test_a_source_that_tries_many_names_gets_a_few_checks_a_second_and_no_more(
    clock: Clock, is_costly: bool, free: int, per_s: int
) -> None:
    dice = random.Random(1)
    slowing = Slowing(clock=clock, chance=dice.random)
    slowing.succeeded("10.0.0.1", "alice")
    checked = tried(slowing, clock, per_s=1_000, seconds=60, is_costly=is_costly)
    # At the beginning of each second a few more than drawn by lot.
    assert checked <= free + 1 + 60 * 3 * per_s
    assert checked >= 60 * per_s / 2
    # Who has logged in from there before is not concerned, and neither is anybody elsewhere.
    for _ in range(50):
        assert is_allowed(slowing, "10.0.0.1", "alice", is_costly=is_costly)
        assert is_allowed(slowing, "10.0.0.2", "user-1000", is_costly=is_costly)


def test_somebody_new_at_the_source_of_a_guesser_gets_in_by_trying_again(clock: Clock) -> None:
    """With a pause for all, whoever tries a thousand times a second would always be first."""
    dice = random.Random(2)
    slowing = Slowing(clock=clock, chance=dice.random)
    tried(slowing, clock, per_s=1_000, seconds=5)
    waits = []
    for name in range(20):
        began = clock.now
        while not is_allowed(slowing, "10.0.0.1", f"new-{name}"):
            tried(slowing, clock, per_s=1_000, seconds=1)
        waits.append(clock.now - began)
    assert sum(waits) / len(waits) < 120


def test_guessing_from_everywhere_is_slowed_and_does_not_keep_the_owner_out(
    clock: Clock,
) -> None:
    dice = random.Random(3)
    slowing = Slowing(clock=clock, chance=dice.random)
    slowing.succeeded("10.9.9.9", "alice")
    checked = 0
    for number in range(20_000):
        clock.now += 0.001
        source = f"10.{number // 65_536}.{number // 256 % 256}.{number % 256}"
        if is_allowed(slowing, source, "alice"):
            checked += 1
            slowing.failed(source, "alice")
    assert checked < 51 + 20 * 20
    for _ in range(50):
        assert is_allowed(slowing, "10.9.9.9", "alice")


def test_who_is_refused_is_told_when_to_come_again(slowing: Slowing) -> None:
    for _ in range(6):
        slowing.failed("10.0.0.1", "alice")
    with pytest.raises(LimitExceeded, match=r"try again in 0\.5 s") as refused:
        slowing.check("10.0.0.1", "alice")
    assert refused.value.retry_after == 0.5


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
    tables: tuple[dict[Any, Any], ...] = (
        *(slowing._pairs._failures, slowing._names._tries, slowing._sources._tries),
        *(slowing._costly_sources._tries, slowing._proven),
    )
    assert all(len(table) <= 100 for table in tables)


def test_a_network_of_ipv6_is_one_source() -> None:
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:1")
    assert source_of("2001:db8::1") != source_of("2001:db8:0:1::1")
    assert source_of("::ffff:10.0.0.1") == source_of("10.0.0.1") == "10.0.0.1"
    assert source_of("a socket") == "a socket"
