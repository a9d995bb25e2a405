"""The stage runner: every folder of tests is a stage, and the closing lines tell the truth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts import stages
from scripts.stages import Outcome, available_stages, summary


def test_every_folder_of_tests_is_a_stage_behind_the_checks() -> None:
    tests = Path(stages.ROOT) / "tests"
    folders = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}
    assert available_stages()[0] == "check"
    assert set(available_stages()) == folders | {"check"}


def test_the_summary_counts_every_stage_and_groups_skips_by_reason() -> None:
    missing = "strace is missing: sudo apt-get install -y strace"
    said = summary(
        [
            Outcome("check", seconds=3.0),
            Outcome("unit", seconds=4.5, passed=7, skipped=Counter({missing: 2})),
            Outcome("contract", passed=2, skipped=Counter({missing: 1})),
        ],
        8.25,
    )
    assert f"   3 x {missing}" in said
    assert said.splitlines()[-1] == "9 passed, 3 skipped in 8.25s"


def test_a_failed_stage_is_named() -> None:
    said = summary([Outcome("unit", ok=False, passed=1, failed=1)], 1.0)
    assert "FAILED: unit" in said
    assert said.splitlines()[-1] == "1 failed, 1 passed in 1.00s"
