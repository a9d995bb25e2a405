"""Clocks that jump and drift, a minority at a time, while leaders trim what is too old."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulation.bugs_in_timekeeping import ahead_while_consuming, mistimed

from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.script import GROUP, leader, let_pass, until
from angarium.testing.sim.settings import (
    AHEAD_FROM,
    MISTIMED_BESIDE_ALL_FROM,
    MISTIMED_FROM,
    RETENTION,
    drawn_settings,
)
from angarium.testing.sim.world import World

pytestmark = pytest.mark.timeout(600)
"""Simulated time does not pass by itself: on a busy machine a run takes as long as it takes."""

DAY = 86_400 * SECOND


@pytest.mark.parametrize("seed", range(1, 5))
def test_nothing_young_is_trimmed_and_no_append_time_runs_ahead(seed: int) -> None:
    world = World(seed, mistimed.settings)
    report = world.run()
    assert report.violations == []
    assert report.faults["clock_jump"] + report.faults["clock_drift"] > 0
    assert any(wish.age_min is not None for wish in world.history.trims)


@pytest.mark.parametrize("busy_with", [{"transactors": 2, "groups": 2}, {"members": 2}], ids=str)
def test_transactions_and_groups_keep_their_promises_beside_wrong_clocks(
    busy_with: dict[str, int],
) -> None:
    settings = mistimed.settings
    assert settings is not None
    world = World(1, replace(settings, producers=2, faults_min=6, **busy_with))  # type: ignore[arg-type]
    report = world.run()
    assert report.violations == []
    assert report.faults["clock_jump"] + report.faults["clock_drift"] > 0
    assert any(wish.age_min is not None for wish in world.history.trims)
    assert any(one.committed for one in world.history.transactions) == ("transactors" in busy_with)
    assert bool(world.history.groups.settles) == ("members" in busy_with)


@pytest.mark.parametrize("seed", range(1, 4))
def test_groups_go_on_when_clocks_that_were_ahead_are_set_right(seed: int) -> None:
    world = World(seed, ahead_while_consuming.settings)
    report = world.run()
    assert report.violations == []
    assert report.faults["clocks_ahead"] > 0
    assert {one.verb for one in world.history.groups.settles} >= {"ack", "nack"}


@pytest.mark.parametrize("error", [DAY, -DAY])
def test_a_leader_whose_clock_jumps_gives_its_place_away_and_gets_it_not_back(error: int) -> None:
    settings = mistimed.settings
    assert settings is not None
    world = World(1, replace(settings, faults_min=0))

    def script(world: World) -> None:
        wrong = leader(world)
        let_pass(world, 1_000)
        wrong = leader(world)
        world.wall_clocks[wrong.id].set(error, rate=0.0, at=world.scheduler.now)
        until(world, lambda: leader(world) is not wrong)
        for _ in range(20):
            world.operator.transfer(GROUP, wrong.id)
            let_pass(world, 500)
        assert leader(world) is not wrong

    assert world.run(script).violations == []


def test_earlier_seeds_know_nothing_of_wrong_clocks_and_later_ones_do() -> None:
    assert all(drawn_settings(seed).retention is None for seed in range(1, 200))
    later = [drawn_settings(MISTIMED_FROM + number) for number in range(200)]
    assert any(one.retention == RETENTION for one in later)
    assert not any(one.retention and (one.members or one.transactors) for one in later)
    latest = [drawn_settings(MISTIMED_BESIDE_ALL_FROM + number) for number in range(200)]
    assert any(one.retention and one.members for one in latest)
    assert any(one.retention and one.transactors for one in latest)
    ahead = [drawn_settings(AHEAD_FROM + number) for number in range(200)]
    assert any("clocks_ahead" in one.faults.weights for one in ahead)
    assert not any("clocks_ahead" in one.faults.weights and one.retention for one in ahead)
    assert not any("clocks_ahead" in one.faults.weights for one in latest)
