"""Whole clusters under faults, a few seeds of each kind; `make sim` runs more of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from angarium.testing.sim.scenarios import SCENARIOS
from angarium.testing.sim.world import OPERATIONS_MIN, OVERLAPPING_FAULTS_MIN, World

SEEDS = range(1, 25)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_faults_break_no_promise(seed: int) -> None:
    report = World(seed).run()
    assert [str(violation) for violation in report.violations] == []
    assert report.operations >= OPERATIONS_MIN
    assert report.overlapping >= OVERLAPPING_FAULTS_MIN


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_schedules_with_a_name_break_no_promise(name: str) -> None:
    for seed in (1, 2):
        report = SCENARIOS[name](seed)
        assert [str(violation) for violation in report.violations] == []


def test_one_seed_is_one_run() -> None:
    first, second = World(3).run(), World(3).run()
    assert first.digest == second.digest
    assert World(4).run().digest != first.digest


def test_one_seed_is_one_run_in_another_process_too() -> None:
    program = "from angarium.testing.sim.world import World; print(World(3).run().digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert digests == {f"{World(3).run().digest}\n"}
