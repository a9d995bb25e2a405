"""Frames that bring no request further are counted, and floods of them share little of the time."""

from __future__ import annotations

import asyncio

import pytest
from tests.floods.frames import KINDS, cells
from tests.on_a_loop import run

from angarium.wire.flooding import (
    CALM_FRAMES_MAX,
    CONTROL_FRAMES_MAX,
    DECLARED,
    FloodGate,
    FloodMeter,
    TooManyFrames,
)
from angarium.wire.flooding.bounds import (
    CALM_LEAST,
    CALM_UNPROVEN_MAX,
    COUNTED_SECONDS,
    FLOODS_PERCENT_MAX,
    SATURATED_BYTES,
)
from angarium.wire.frames import FrameKind


def test_the_matrix_has_every_kind_that_is_declared_and_no_other() -> None:
    assert {door: set(kinds) for door, kinds in KINDS.items()} == {
        door: set(kinds) for door, kinds in DECLARED.items()
    }
    assert {one.door for one in cells()} == set(DECLARED)


def test_every_kind_of_frame_of_the_wire_is_declared_or_ends_the_connection() -> None:
    # The first greets; the other one is taken from nodes alone, and ends a client's connection.
    others = {"HELLO", "MESSAGE"}
    assert {one.name for one in FrameKind} - others == set(DECLARED[next(reversed(DECLARED))])


def test_the_bound_is_passed_by_one_frame_too_many() -> None:
    meter = FloodMeter(is_proven=True)
    meter.count(CONTROL_FRAMES_MAX)
    with pytest.raises(TooManyFrames):
        meter.count()


def test_work_makes_room_for_the_frames_that_come_with_it() -> None:
    meter = FloodMeter(frames_max=10, is_proven=True)
    meter.work = 100
    meter.count(210)
    with pytest.raises(TooManyFrames):
        meter.count()


@pytest.mark.parametrize(
    ("is_proven", "calm"), [(True, CALM_FRAMES_MAX), (False, CALM_UNPROVEN_MAX)]
)
def test_a_connection_floods_from_a_fraction_of_the_bound_on(is_proven: bool, calm: int) -> None:
    meter = FloodMeter(is_proven=is_proven)
    meter.count(calm)
    assert not meter.is_flooding
    meter.count()
    assert meter.is_flooding


def test_counting_begins_anew_after_a_second_unless_the_flood_goes_on() -> None:
    meter = FloodMeter(is_proven=True)
    meter.look(100.0)
    meter.count(CALM_FRAMES_MAX + 1)
    meter.look(100.0 + COUNTED_SECONDS - 0.001)
    assert meter.control
    meter.look(200.0, size=SATURATED_BYTES)
    assert meter.control
    meter.is_behind = True
    meter.look(200.0)
    assert meter.control
    meter.is_behind = False
    meter.look(200.0, size=SATURATED_BYTES - 1)
    assert not meter.control


def test_a_client_below_the_bound_is_never_cut_however_long_it_goes_on() -> None:
    meter, now = FloodMeter(is_proven=True), 100.0
    for _ in range(3 * CONTROL_FRAMES_MAX):
        now += COUNTED_SECONDS / (4 * CALM_FRAMES_MAX)
        meter.look(now, size=64)
        meter.count()
    assert meter.is_flooding


class Clock:
    """Time that passes while turns are taken."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_flooding_connections_take_turns_and_rest_most_of_the_time() -> None:
    async def story() -> None:
        clock, order = Clock(), list[int]()
        gate = FloodGate(clock=clock)

        def turn(number: int, *, left: int = 3) -> None:
            order.append(number)
            clock.now += 0.004
            if left:
                gate.wait(lambda: turn(number, left=left - 1))

        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(3):
            gate.wait(lambda number=number: turn(number))  # type: ignore[misc]
        done = asyncio.Event()
        gate.wait(lambda: None)
        while len(order) < 12:
            loop.call_later(0.005, done.set)
            await done.wait()
            done.clear()
        assert order == [0, 1, 2] * 4
        rested = 11 * 0.004 * (100 - FLOODS_PERCENT_MAX) / FLOODS_PERCENT_MAX
        assert loop.time() - began >= 0.95 * rested

    run(story())


def test_a_turn_that_fails_does_not_end_the_turns_of_others() -> None:
    async def story() -> None:
        gate, taken = FloodGate(), asyncio.Event()

        def fails() -> None:
            raise RuntimeError("planted")

        gate.wait(fails)
        gate.wait(taken.set)
        await taken.wait()

    run(story())


def test_calm_connections_before_login_flood_together() -> None:
    clock = Clock()
    gate = FloodGate(clock=clock)
    many = [FloodMeter(unproven=gate.unproven) for _ in range(64)]
    for one in many:
        one.count(CALM_UNPROVEN_MAX - 1)
    assert all(one.is_flooding for one in many)
    newcomer = FloodMeter(unproven=gate.unproven)
    newcomer.count(CALM_LEAST)
    assert not newcomer.is_flooding  # a login goes on
    known = FloodMeter(unproven=gate.unproven, is_proven=True)
    known.count(CALM_UNPROVEN_MAX)
    assert not known.is_flooding
    clock.now += 2 * COUNTED_SECONDS
    assert not any(one.is_flooding for one in many)


def test_a_few_connections_before_login_do_not_flood_together() -> None:
    gate = FloodGate(clock=Clock())
    few = [FloodMeter(unproven=gate.unproven) for _ in range(30)]
    for one in few:
        one.count(CALM_UNPROVEN_MAX)
    assert not any(one.is_flooding for one in few)
