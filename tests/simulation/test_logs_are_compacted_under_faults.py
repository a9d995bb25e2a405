"""Compaction while nodes crash, lose power, are wiped and replaced; and bugs planted in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulation import bugs_in_compaction
from tests.simulation.bugs_in_compaction import compacting
from tests.simulation.planting import bugs_of

from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.script import GROUP, THREE
from angarium.testing.sim.world import World

pytestmark = pytest.mark.timeout(600)
"""Simulated time does not pass by itself: on a busy machine a run takes as long as it takes."""

BUGS = {one.name: one for one in bugs_of(bugs_in_compaction)}


@pytest.mark.parametrize("seed", range(1, 7))
def test_nothing_but_what_was_superseded_goes_and_replicas_agree(seed: int) -> None:
    assert compacting(seed).violations == []


@pytest.mark.parametrize("seed", [20802, 25057])
def test_seeds_that_once_showed_a_mistake_are_clean(seed: int) -> None:
    assert World(seed).run().violations == []


def test_a_replica_that_came_back_with_nothing_is_not_done_with_its_compaction() -> None:
    world = World(1, replace(THREE, compactors=1))
    world.form()
    (compactor,) = world.compactors
    world.wait(5 * SECOND, compactor.are_done)
    assert compactor.are_done()
    follower = next(
        world.nodes[node]
        for node in sorted(world.operator.wanted[GROUP])
        if not world.nodes[node].host.replicas[GROUP].may_serve  # type: ignore[union-attr]
    )
    follower.wipe()
    assert not compactor.are_done()
    follower.boot()
    assert not compactor.are_done()
    world.wait(10 * SECOND, compactor.are_done)
    assert compactor.are_done()


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_planted_in_compaction_is_found(name: str) -> None:
    bug = BUGS[name]
    for seed in range(1, bug.seeds_max + 1):
        if bug.found_by(seed):
            return
    pytest.fail(f"{name} was not found within {bug.seeds_max} seeds: {bug.sentence}")
