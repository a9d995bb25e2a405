"""Witnesses together with regions, and with rebalances by the real planner, under all faults."""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING

import pytest

from angarium.testing.sim.settings import (
    WITNESSED_BESIDE_ALL_FROM,
    WITNESSED_FROM,
    Settings,
    drawn_settings,
    with_a_region_of_witnesses,
)
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(600)
"""Simulated time does not pass by itself: on a busy machine a run takes as long as it takes."""


def first(number: int, is_meant: Callable[[Settings], bool]) -> list[int]:
    seeds = (one for one in count(WITNESSED_BESIDE_ALL_FROM) if is_meant(drawn_settings(one)))
    return list(islice(seeds, number))


SEEDS = [
    *first(3, lambda one: bool(one.witnesses) and one.wan is not None),
    *first(3, lambda one: bool(one.witnesses) and one.rebalancing and one.wan is None),
    *first(2, lambda one: bool(one.witnesses) and one.rebalancing and one.wan is not None),
]


@pytest.mark.parametrize("seed", dict.fromkeys(SEEDS))
def test_no_promise_is_broken_with_witnesses_beside_all_else(seed: int) -> None:
    report = World(seed).run()
    assert report.violations == [], f"python -m angarium.testing.sim --replay {seed}"


def test_witnesses_have_a_region_of_their_own() -> None:
    for seed in range(30):
        settings = with_a_region_of_witnesses(Settings(), seed)
        world = World(seed, settings)
        assert settings.wan is not None
        of_witnesses = {world.network.regions[f"node-{one}"] for one in world.witness_ids}
        of_records = {world.network.regions[f"node-{one}"] for one in world.node_ids}
        assert of_witnesses == {settings.wan.regions[-1]}
        assert of_records == set(settings.wan.regions[:-1])


def test_earlier_seeds_have_witnesses_in_one_place_and_without_rebalances() -> None:
    for seed in range(WITNESSED_FROM, WITNESSED_FROM + 500):
        one = drawn_settings(seed)
        assert not one.witnesses or (one.wan is None and not one.rebalancing)
