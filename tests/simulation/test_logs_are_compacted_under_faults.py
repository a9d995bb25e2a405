"""Compaction while nodes crash, lose power, are wiped and replaced; and bugs planted in it."""

from __future__ import annotations

import pytest
from tests.simulation import bugs_in_compaction
from tests.simulation.bugs_in_compaction import compacting
from tests.simulation.planting import bugs_of

pytestmark = pytest.mark.timeout(600)
"""Simulated time does not pass by itself: on a busy machine a run takes as long as it takes."""

BUGS = {one.name: one for one in bugs_of(bugs_in_compaction)}


@pytest.mark.parametrize("seed", range(1, 7))
def test_nothing_but_what_was_superseded_goes_and_replicas_agree(seed: int) -> None:
    assert compacting(seed).violations == []


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_planted_in_compaction_is_found(name: str) -> None:
    bug = BUGS[name]
    for seed in range(1, bug.seeds_max + 1):
        if bug.found_by(seed):
            return
    pytest.fail(f"{name} was not found within {bug.seeds_max} seeds: {bug.sentence}")
