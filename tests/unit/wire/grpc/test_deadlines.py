"""Calls end when their deadlines have passed, and one timer is enough for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.wire.grpc.deadlines import LOOK_EVERY_S, Deadlines

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Timer:
    """One that can be taken back."""

    def __init__(self, at: float, act: Callable[[], None]) -> None:
        self.at = at
        self.act = act
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """A loop's time, which passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []
        self.fired = 0

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, act: Callable[[], None]) -> Timer:
        self.timers.append(Timer(at, act))
        return self.timers[-1]

    @property
    def set_timers(self) -> list[Timer]:
        return [one for one in self.timers if not one.is_cancelled]

    def pass_to(self, end: float) -> None:
        while due := [one for one in self.set_timers if one.at <= end]:
            first = min(due, key=lambda one: one.at)
            self.timers.remove(first)
            self.now = max(self.now, first.at)
            self.fired += 1
            first.act()
        self.now = end


class Ending:
    """A call that writes down when it was ended."""

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self.ended_at: float | None = None

    def expire(self) -> None:
        self.ended_at = self._clock.now
        self._deadlines.discard(cast("Any", self))


class Watching:
    def __init__(self) -> None:
        self.clock = Clock()
        self.deadlines = Deadlines(cast("asyncio.AbstractEventLoop", self.clock))

    def call(self, seconds: float) -> Ending:
        call = Ending(self.clock, self.deadlines)
        self.deadlines.add(cast("Any", call), self.clock.now + seconds)
        return call

    def discard(self, call: Ending) -> None:
        self.deadlines.discard(cast("Any", call))


def test_a_call_ends_at_its_deadline() -> None:
    it = Watching()
    call = it.call(5.0)
    it.clock.pass_to(104.999)
    assert call.ended_at is None
    it.clock.pass_to(105.001)
    assert call.ended_at == 105.0


def test_one_that_is_due_earlier_does_not_wait_for_those_before_it() -> None:
    it = Watching()
    late, soon = it.call(50.0), it.call(0.5)
    it.clock.pass_to(101.0)
    assert (soon.ended_at, late.ended_at) == (100.5, None)
    it.clock.pass_to(151.0)
    assert late.ended_at == 150.0


def test_a_call_that_is_over_is_let_be() -> None:
    it = Watching()
    call = it.call(1.0)
    it.discard(call)
    it.discard(call)
    it.clock.pass_to(200.0)
    assert call.ended_at is None
    assert not it.clock.set_timers


def test_calls_that_come_and_go_need_few_timers() -> None:
    it = Watching()
    for _ in range(1_000):
        call = it.call(5.0)
        it.clock.pass_to(it.clock.now + 0.01)
        it.discard(call)
    assert len(it.clock.set_timers) == 1
    assert it.clock.fired <= 3


def test_many_deadlines_close_together_are_looked_at_together() -> None:
    it = Watching()
    calls = [it.call(1.0 + at / 10_000) for at in range(1_000)]
    it.clock.pass_to(102.0)
    assert all(one.ended_at is not None for one in calls)
    assert it.clock.fired <= 0.1 / LOOK_EVERY_S + 2


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1), st.booleans()), max_size=40))
def test_whatever_comes_each_call_ends_once_and_hardly_late(
    steps: list[tuple[float, float, bool]],
) -> None:
    it = Watching()
    open_calls: list[tuple[Ending, float]] = []
    for seconds, passes, is_answered in steps:
        call = it.call(seconds)
        if is_answered:
            it.discard(call)
        else:
            open_calls.append((call, it.clock.now + seconds))
        it.clock.pass_to(it.clock.now + passes)
    it.clock.pass_to(it.clock.now + 10)
    for call, due in open_calls:
        assert call.ended_at is not None
        assert due <= call.ended_at <= due + LOOK_EVERY_S + 1e-6
    assert not it.clock.set_timers


def test_a_call_without_time_ends_at_the_next_turn() -> None:
    it = Watching()
    call = it.call(0.0)
    assert call.ended_at is None
    it.clock.pass_to(it.clock.now)
    assert call.ended_at == pytest.approx(100.0)
