"""The tester tested: each bug that is hidden for the simulator is found, and nothing without one.

A search begins at a seed known to be near, so that the whole table fits into a minute or two; from
wherever one begins, it must not take more than the number of seeds stated with the bug.
`ANGARIUM_PLANTED_FIRST=1` begins every search at seed 1, and shows how many it takes from there.
"""

from __future__ import annotations

import os

import pytest
from tests.simulation.planted import BUGS

NEAR = {
    "leader-counts-itself-before-its-fsync": 20,
    "fsync-error-ignored": 18,
    "damage-cut-silently": 4,
    "recovering-replica-goes-on": 5,
    "messages-to-an-older-incarnation-accepted": 18,
    "segments-not-synced-before-the-log-is-freed": 6,
    "corrupt-segment-served": 6,
    "start-forgotten-at-snapshot": 4,
    "stages-left-out-of-snapshots": 8,
    "unknown-called-no": 18,
}
"""Where to begin; everything else is found within a few seeds from 1 on."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(BUGS))
def test_it_is_found(name: str) -> None:
    bug = BUGS[name]
    first = int(os.environ.get("ANGARIUM_PLANTED_FIRST", NEAR.get(name, 1)))
    for seed in range(first, first + bug.seeds_max):
        if bug.found_by(seed):
            print(f"{name}: found with seed {seed}, after {seed - first + 1}")
            # The same run without the bug keeps every promise: it is the bug that was found.
            assert [str(one) for one in bug.run(seed).violations] == []
            return
    pytest.fail(f"not found within {bug.seeds_max} seeds from {first} on: {bug.sentence}")
