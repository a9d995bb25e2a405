"""The tester tested: every bug that was planted is found, and nothing is found without it.

A search begins at seed 1 and ends with the first seed whose checkers say anything, or fails after
as many as the bug states. `make planted` searches from several beginnings and prints a table.
"""

from __future__ import annotations

import pytest
from tests.simulation.planted import BUGS

pytestmark = pytest.mark.timeout(600)
"""Simulated time does not pass by itself: on a busy machine a search takes as long as it takes."""


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    for seed in range(1, bug.seeds_max + 1):
        if bug.found_by(seed):
            # It must be the bug that was found, not something that is always there.
            assert bug.run(seed).violations == []
            return
    pytest.fail(f"{name} was not found within {bug.seeds_max} seeds: {bug.sentence}")


def test_a_planted_bug_is_gone_when_its_run_is_over() -> None:
    for bug in BUGS.values():
        before = [(owner, key, vars(owner)[key]) for owner, key, _ in bug.replacements()]
        with bug.planted():
            assert all(vars(owner)[key] is not original for owner, key, original in before)
        assert all(vars(owner)[key] is original for owner, key, original in before)


def test_there_are_enough_of_them_and_each_says_what_is_wrong() -> None:
    assert len(BUGS) >= 24
    assert len({bug.sentence for bug in BUGS.values()}) == len(BUGS)
    assert all(bug.sentence.endswith(".") for bug in BUGS.values())
