"""The stage runner: every folder of tests is a stage, and the closing lines tell the truth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
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


FOUR_FATES = """
import pytest

def test_passes(): pass
def test_fails(): assert False
@pytest.mark.parametrize("n", range(2))
def test_skips(n): pytest.skip("no horse")
@pytest.mark.xfail(reason="no rider", strict=True)
def test_is_known_to_fail(): assert False
"""


@pytest.fixture
def small_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with one folder of tests, of each fate one or two."""
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    (folder / "test_fates.py").write_text(FOUR_FATES, encoding="utf-8")
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    monkeypatch.setattr(stages, "LOGS", tmp_path / "logs")
    # Which plugins are installed is nothing to it, and to load them takes longer than its tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def test_a_stage_is_counted_by_fate_and_logged(
    small_project: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert stages.main(["--jobs", "1", "unit"]) == 1
    said = capfdbinary.readouterr().out.decode()
    assert said.splitlines()[-1].startswith("1 failed, 1 passed, 2 skipped, 1 xfailed in ")
    assert "   2 x no horse" in said
    assert "   1 x no rider" in said
    assert "test_fails" in (small_project / "logs" / "unit.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(("picked", "status"), [("passes", 0), ("fails", 1), ("gallops", 5)])
@pytest.mark.usefixtures("small_project", "capfdbinary")
def test_arguments_reach_pytest_and_picking_nothing_at_all_is_no_success(
    picked: str, status: int
) -> None:
    assert stages.main(["--jobs", "1", "unit", "--", "-k", picked]) == status


@pytest.mark.usefixtures("capfdbinary")
def test_what_was_compiled_once_is_kept_also_where_the_environment_forbids_it(
    small_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert stages.main(["--jobs", "1", "unit", "--", "-k", "passes"]) == 0
    assert list(small_project.rglob("__pycache__/test_fates*.pyc"))


UNSTEADY = """
from pathlib import Path

def test_passes(): pass

def test_fails_among_others():
    marker = Path(__file__).with_name("seen")
    seen = marker.exists()
    marker.touch()
    assert seen
"""


def test_what_fails_among_others_and_passes_alone_is_named_and_no_failure(
    small_project: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (small_project / "tests" / "unit").rename(small_project / "tests" / "cluster")
    (small_project / "tests" / "cluster" / "test_fates.py").write_text(UNSTEADY, encoding="utf-8")
    assert stages.main(["--jobs", "1", "cluster"]) == 0
    said = capfdbinary.readouterr().out.decode()
    assert "unsteady" in said
    assert "::test_fails_among_others" in said
    assert said.splitlines()[-1].startswith("2 passed in ")
    log = (small_project / "logs" / "cluster.log").read_text(encoding="utf-8")
    assert "assert seen" in log, "the first failure is kept"


@pytest.mark.parametrize("stage", ["cluster", "unit"])
def test_what_fails_again_and_what_has_no_real_time_fails(
    small_project: Path, capfdbinary: pytest.CaptureFixture[bytes], stage: str
) -> None:
    if stage == "cluster":
        (small_project / "tests" / "unit").rename(small_project / "tests" / "cluster")
    else:
        (small_project / "tests/unit/test_fates.py").write_text(UNSTEADY, encoding="utf-8")
    assert stages.main(["--jobs", "1", stage]) == 1
    assert capfdbinary.readouterr().out.decode().splitlines()[-1].startswith("1 failed, 1 passed")
