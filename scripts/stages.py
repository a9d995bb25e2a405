"""Run the checks and tests in stages, each with its time and its own log, and sum them up.

`check` is the linters; every folder of `tests/` that holds tests is a stage of its own, so a new
folder can never be forgotten. All stages run even when one fails, and the exit status says whether
all were well. The last line counts the tests the way pytest does.

Tests of real processes share a machine with whatever else runs there. If a few of them fail,
those are run once more, alone; what passes then is no failure but *unsteady*: named at the end, its
first failure is in the log, and whoever reads it mends it. Without real time no test gets this.

    python scripts/stages.py [--jobs N] [STAGE ...] [-- PYTEST ARGUMENTS ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).resolve().parent.parent
LOGS: Final = ROOT / ".angarium" / "test"

ORDER: Final = (
    "check",
    "project",
    "unit",
    "component",
    "contract",
    "conformance",
    "fuzz",
    "simulation",
)
"""Cheap and telling first. Folders not named here follow by name."""

JOBS_MAX: Final = 4
"""Workers per stage unless told otherwise. More would mostly wait for one another's disk."""

GROUPED: Final = {"spark": 2}
"""Stages whose tests say themselves which of them belong into one process, because they share one
costly thing (a Spark session), and how many processes that makes."""

WAITING: Final = {"cluster": 2, "component": 2}
"""Stages whose tests wait about as long as they compute, for elections, leases, certificates that
expire, and how many workers each of the jobs makes there."""

LOOKED_AT_TWICE: Final = frozenset(
    {"cluster", "component", "contract", "delivery", "doors", "spark"}
)
"""Stages with real sockets, processes and clocks, in which a busy machine alone can fail a test."""

LOOKED_AT_TWICE_MAX: Final = 5
"""More failures than this in one stage are no accident, and get no second look."""

BUDGET_SECONDS: Final = 1_500
"""What a whole run may take on two cores. Above it the run says so; it does not fail."""

NOTHING_COLLECTED: Final = 5
"""pytest's exit status when no test was there, or none was picked."""

CHECKS: Final = {
    "ruff check": ("-m", "ruff", "check", "."),
    "ruff format": ("-m", "ruff", "format", "--check", "."),
    "mypy --strict": ("-m", "mypy", "src", "tests", "benchmarks", "scripts"),
    # import-linter has no __main__; its command is a function.
    "import contracts": (
        "-c",
        "import sys; from importlinter.cli import lint_imports_command as lint; sys.exit(lint())",
        "--no-logo",
    ),
}


@dataclass(slots=True)
class Outcome:
    """What one stage came to."""

    stage: str
    ok: bool = True
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """How many tests were skipped, by reason."""
    expected_failures: Counter[str] = field(default_factory=Counter)
    """How many tests failed as they were said to, by reason."""
    failures: list[str] = field(default_factory=list)
    """The names of those that failed."""
    unsteady: list[str] = field(default_factory=list)
    """The names of those that failed among others, and passed alone. They count as passed."""

    @property
    def ran(self) -> int:
        """How many tests there were."""
        skipped = self.skipped.total() + self.expected_failures.total()
        return self.passed + self.failed + skipped


def main(arguments: list[str]) -> int:
    """Run the stages that `arguments` name, or all; return the exit status."""
    stages = available_stages()
    parser = argparse.ArgumentParser(description="Run the checks and tests in stages.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(stages))
    parser.add_argument("--jobs", type=int, default=min(JOBS_MAX, os.cpu_count() or 1))
    own, for_pytest = _split(arguments)
    options = parser.parse_args(own)
    if unknown := [name for name in options.stages if name not in stages]:
        parser.error(f"no stage {', '.join(unknown)}; there are: {', '.join(stages)}")

    LOGS.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    outcomes = []
    for stage in options.stages or stages:
        print(f"\n== {stage}", flush=True)
        outcome = run_checks() if stage == "check" else run_tests(stage, options.jobs, for_pytest)
        outcomes.append(outcome)
        verdict = "ok" if outcome.ok else f"FAILED, see {_log_path(stage).relative_to(ROOT)}"
        print(f"== {stage}: {verdict}, {outcome.seconds:.1f} s", flush=True)
    print(summary(outcomes, time.monotonic() - started))
    if for_pytest and not any(outcome.ran for outcome in outcomes):
        return NOTHING_COLLECTED
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def available_stages() -> list[str]:
    """Return every stage there is, in the order in which they run."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    found = {folder.relative_to(ROOT / "tests").parts[0] for folder in folders} | {"check"}
    return [name for name in ORDER if name in found] + sorted(found.difference(ORDER))


def run_checks() -> Outcome:
    """Run every linter, also after one of them complained; print only what a failed one said."""
    outcome = Outcome("check")
    started = time.monotonic()
    with _log_path("check").open("w", encoding="utf-8") as log:
        for name, command in CHECKS.items():
            check_started = time.monotonic()
            done = subprocess.run(  # noqa: S603  (only the commands above)
                [sys.executable, *command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                check=False,
            )
            well = done.returncode == 0
            outcome.ok &= well
            seconds = time.monotonic() - check_started
            print(f"   {name}: {'ok' if well else 'FAILED'}, {seconds:.1f} s", flush=True)
            if not well:
                print(done.stdout, flush=True)
            log.write(f"== {name}\n{done.stdout}\n")
    outcome.seconds = time.monotonic() - started
    return outcome


def run_tests(stage: str, jobs: int, for_pytest: list[str]) -> Outcome:
    """Run the tests of one folder under pytest, on `jobs` workers."""
    workers = []
    if jobs > 1:
        groups = GROUPED.get(stage)
        workers = ["-n", str(groups or jobs * WAITING.get(stage, 1))]
        workers += ["--dist", "loadgroup"] if groups else []
    started = time.monotonic()
    with _log_path(stage).open("wb") as log:
        outcome = _run_pytest(stage, [*workers, *for_pytest], log)
        if stage in LOOKED_AT_TWICE and 0 < outcome.failed <= LOOKED_AT_TWICE_MAX:
            print(f"== {stage}: {outcome.failed} failed; once more, alone", flush=True)
            _look_again(outcome, for_pytest, log)
    # Arguments such as `-k wal` may rightly pick nothing in one stage.
    outcome.ok |= bool(for_pytest) and not outcome.ran
    outcome.seconds = time.monotonic() - started
    return outcome


def _look_again(outcome: Outcome, for_pytest: list[str], log: IO[bytes]) -> None:
    """Run alone what has failed among others; what passes now was unsteady."""
    last_failed = ["--last-failed", "--last-failed-no-failures", "none"]
    again = _run_pytest(outcome.stage, [*last_failed, *for_pytest], log)
    if again.ran != outcome.failed:
        return  # somebody else's notes of what failed last: nothing is shown by them
    outcome.ok = again.ok
    outcome.unsteady = [name for name in outcome.failures if name not in again.failures]
    outcome.failed = again.failed
    outcome.passed += again.passed
    outcome.failures = again.failures


def _run_pytest(stage: str, arguments: list[str], log: IO[bytes]) -> Outcome:
    report = LOGS / f"{stage}.xml"
    report.unlink(missing_ok=True)
    # Skips are listed once, at the end of the whole run; here only failures and errors (-rfE).
    command = [sys.executable, "-m", "pytest", f"tests/{stage}", "-q", "-rfE"]
    status = _run([*command, f"--junitxml={report}", *arguments], log)
    outcome = Outcome(stage, ok=status == 0)
    if report.exists():
        _count(report, outcome)
    return outcome


def summary(outcomes: list[Outcome], seconds: float) -> str:
    """Return the closing table, the skips by reason, and the line that counts everything."""
    row = "{:<14}{:>8}{:>8}{:>8}{:>9}{:>9}{:>10}".format
    lines = ["", row("stage", "result", "passed", "failed", "skipped", "xfailed", "seconds")]
    for one in outcomes:
        result = "ok" if one.ok else "FAILED"
        counts: tuple[int | str, ...] = ("",) * 4
        if one.stage != "check":
            counts = (one.passed, one.failed, one.skipped.total(), one.expected_failures.total())
        lines.append(row(one.stage, result, *counts, f"{one.seconds:.1f}"))
    skipped = sum((one.skipped for one in outcomes), Counter[str]())
    expected = sum((one.expected_failures for one in outcomes), Counter[str]())
    lines += _by_reason("skipped", skipped) + _by_reason("failed as expected", expected)
    if unsteady := [name for one in outcomes for name in one.unsteady]:
        lines += [
            "",
            "unsteady, for they failed among others and passed alone (the logs have why):",
        ]
        lines += [f"  {name}" for name in unsteady]
    if seconds > BUDGET_SECONDS:
        lines += ["", f"This took longer than the {BUDGET_SECONDS} s a run should take."]
    counted = {
        "failed": sum(one.failed for one in outcomes),
        "passed": sum(one.passed for one in outcomes),
        "skipped": skipped.total(),
        "xfailed": expected.total(),
    }
    said = ", ".join(f"{count} {what}" for what, count in counted.items() if count)
    bad = [one.stage for one in outcomes if not one.ok]
    if bad:
        lines += ["", f"FAILED: {', '.join(bad)}"]
    return "\n".join([*lines, "", f"{said or 'no tests ran'} in {seconds:.2f}s"])


def _by_reason(what: str, reasons: Counter[str]) -> list[str]:
    if not reasons:
        return []
    return ["", f"{what}, by reason:"] + [f"  {n:>4} x {why}" for why, n in reasons.most_common()]


def _count(report: Path, outcome: Outcome) -> None:
    """Read pytest's JUnit report into `outcome`."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  (our own pytest wrote it)
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
            outcome.failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif skip is None:
            outcome.passed += 1
        elif skip.get("type") == "pytest.xfail":
            outcome.expected_failures[skip.get("message", "")] += 1
        else:
            outcome.skipped[skip.get("message", "")] += 1


def _run(command: list[str], log: IO[bytes]) -> int:
    """Run `command`, writing what it prints to `log` and the terminal; return its status.

    It may write bytecode, also where images of containers forbid it: else each worker, and each
    node and command that a test starts, compiles all of the source anew.
    """
    forbids = "PYTHONDONTWRITEBYTECODE"
    with subprocess.Popen(  # noqa: S603  (only the commands of this file)
        command,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != forbids},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        # Whatever is there, not whole lines: pytest's dots should appear as they come.
        while chunk := os.read(process.stdout.fileno(), 65536):
            log.write(chunk)
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    return process.returncode


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Part our own arguments from those behind `--`, which are pytest's."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def _log_path(stage: str) -> Path:
    return LOGS / f"{stage}.log"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
