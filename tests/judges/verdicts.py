"""What a judge says of one case, and how a machine's lack of a tool is told."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CASE_SECONDS_MAX: Final = 120.0
"""A program that has not ended by then has failed its case."""


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one case."""

    case: str
    outcome: Outcome
    told: str = ""
    """What was expected and what came, in the judge's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the servers are that are judged, each as HOST:PORT."""

    broker: str
    """A node's gRPC door."""
    service: str
    """gRPC's test service, on the server that our doors are made of."""
    service_tls: str | None = None
    """The same, encrypted, with a certificate that nobody knows."""


class MissingTool(Exception):
    """A judge cannot be had on this machine; says what is missing."""


def ran(
    command: Sequence[str], *, folder: Path | None = None, seconds: float = CASE_SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    """Run a judge to its end; one that does not end is made to, with status 124."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        told = error.stdout or b""
        text = told.decode(errors="replace") if isinstance(told, bytes) else told
        return subprocess.CompletedProcess(command, 124, f"{text}\nnot over after {seconds:g} s")


def by_status(case: str, done: subprocess.CompletedProcess[str]) -> Verdict:
    """Return what a program says of one case by its exit status."""
    if done.returncode == 0:
        return Verdict(case, Outcome.PASSED)
    return Verdict(case, Outcome.FAILED, f"exit {done.returncode}: {done.stdout.strip()[-2_000:]}")


def by_lines(done: subprocess.CompletedProcess[str]) -> Iterator[Verdict]:
    """Yield what a story tells: `ok CASE` or `FAILED CASE: why`, a line each."""
    found = False
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ok":
            found = True
            yield Verdict(rest, Outcome.PASSED)
        elif word == "FAILED":
            found = True
            case, _, told = rest.partition(": ")
            yield Verdict(case, Outcome.FAILED, told)
    if not found:
        yield Verdict("the story itself", Outcome.FAILED, done.stdout.strip()[-2_000:])
    elif done.returncode not in (0, 1):
        yield Verdict("its end", Outcome.FAILED, f"exit {done.returncode}: {done.stdout[-2_000:]}")
