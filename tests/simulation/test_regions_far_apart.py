"""Clusters in several regions: delays, losses, whole regions gone, readers at the nearest node."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count, islice

import pytest

from angarium.testing.history import Result
from angarium.testing.sim.recovery import ack_within, probe
from angarium.testing.sim.script import GROUP
from angarium.testing.sim.settings import REGIONS_FROM, Settings, drawn_settings, in_regions
from angarium.testing.sim.wan import ONE_WAY_MAX, ONE_WAY_MIN, Living, drawn_wan, placed
from angarium.testing.sim.world import World

pytestmark = pytest.mark.timeout(600)
"""Simulated time does not pass by itself: on a busy machine a run takes as long as it takes."""

SEEDS = 6


def seeds() -> list[int]:
    return list(islice((one for one in count(REGIONS_FROM) if drawn_settings(one).wan), SEEDS))


@pytest.mark.parametrize("seed", seeds())
def test_no_promise_is_broken_between_regions(seed: int) -> None:
    world = World(seed)
    report = world.run()
    assert report.violations == [], f"python -m angarium.testing.sim --replay {seed}"
    assert any(one.staleness is not None for one in world.history.fetches)


@pytest.mark.parametrize("living", Living)
def test_whole_regions_are_lost_cut_off_and_fall_silent(living: Living) -> None:
    settings = in_regions(Settings(producers=2, readers=1, faults_min=6), 5, living=living)
    weights = {"region_loss": 1, "region_cut": 1, "region_one_way": 1}
    world = World(3, replace(settings, faults=replace(settings.faults, weights=weights)))
    report = world.run()
    assert report.violations == []
    assert sum(report.faults.values()) >= 6
    assert report.faults.keys() <= weights.keys()


def test_whoever_asks_between_regions_finds_the_leader_in_time() -> None:
    """Seed 340008: who guessed among nodes far away missed a leader that was there all the time."""

    def script(world: World) -> None:
        world.wait(ack_within(world), lambda: world.operator.leader(GROUP) is not None)
        probes = [probe(world, number, GROUP) for number in range(1, 101)]
        world.wait(ack_within(world), lambda: all(one.result is Result.OK for one in probes))
        assert [one for one in probes if one.result is not Result.OK] == []

    settings = in_regions(Settings(producers=0, readers=0), 36, living=Living.HOMED)
    report = World(3, settings).run(script)
    assert report.violations == []


@pytest.mark.parametrize("regions", [3, 5])
def test_regions_are_as_far_apart_as_they_are_on_earth(regions: int) -> None:
    for seed in range(50):
        wan = drawn_wan(random.Random(seed), regions=regions)
        assert len(wan.ways) == regions * (regions - 1)
        for (one, other), way in wan.ways.items():
            assert ONE_WAY_MIN <= way.delay <= ONE_WAY_MAX
            assert way.delay == wan.ways[other, one].delay, "the cable is the same both ways"


def test_partitions_live_as_they_should() -> None:
    for seed in range(20):
        for living in Living:
            settings = in_regions(Settings(), seed, living=living)
            world = World(seed, settings)
            assert settings.wan is not None
            voters, readers = placed(
                settings.wan,
                world.node_ids,
                replicas=settings.replicas,
                at=1,
                rng=random.Random(seed),
            )
            regions = [world.network.regions[f"node-{one}"] for one in sorted(voters)]
            if living is Living.SPREAD:
                assert len(set(regions)) == len(voters) == settings.replicas
                assert not readers
            else:
                assert set(regions) == {settings.wan.region_of(1)}
                assert len(readers) == len(settings.wan.regions) - 1


def test_earlier_seeds_know_nothing_of_regions_and_later_ones_do() -> None:
    assert all(drawn_settings(seed).wan is None for seed in range(1, 300))
    later = [drawn_settings(REGIONS_FROM + number) for number in range(200)]
    assert {one.wan.living for one in later if one.wan} == set(Living)
    assert {len(one.wan.regions) for one in later if one.wan} == {3, 5}
    assert any(one.wan is None for one in later)
