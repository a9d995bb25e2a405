"""`make planted`: search for every planted bug, from several beginnings, and print a table.

    python -m tests.simulation.search [--beginnings 1 1001 2001] [--jobs N] [NAME ...]

The table says for each bug how many seeds each search needed, and which checks found it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from typing import NamedTuple

from tests.simulation.planted import BUGS


class Search(NamedTuple):
    """One search for one bug."""

    name: str
    beginning: int
    seeds: int | None
    """How many it took; None if that many are allowed and none found it."""
    checks: tuple[str, ...]


def search(task: tuple[str, int]) -> Search:
    """Run seeds from a beginning on until one finds the bug."""
    name, beginning = task
    bug = BUGS[name]
    for number in range(bug.seeds_max):
        found = bug.found_by(beginning + number)
        if found:
            checks = sorted({sentence.partition(":")[0] for sentence in found})
            return Search(name, beginning, number + 1, tuple(checks))
    return Search(name, beginning, None, ())


def main(arguments: list[str] | None = None) -> int:
    """Search for all, or those named; 1 if one was not found."""
    parser = argparse.ArgumentParser(description="Search for the planted bugs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which bugs (default: all)")
    parser.add_argument("--beginnings", type=int, nargs="+", default=[1, 1001, 2001])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    names = options.names or list(BUGS)
    if unknown := [name for name in names if name not in BUGS]:
        parser.error(f"no bug called {', '.join(unknown)}; there are: {', '.join(BUGS)}")
    tasks = [(name, beginning) for name in names for beginning in options.beginnings]
    missed = 0
    print("| planted bug | what is wrong | run | seeds needed | allowed | found by |")
    print("|---|---|---|---|---|---|")
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        searches = pool.imap(search, tasks)
        for name in names:
            of_bug = [next(searches) for _ in options.beginnings]
            missed += sum(one.seeds is None for one in of_bug)
            print(_row(name, of_bug), flush=True)
    return 1 if missed else 0


def _row(name: str, searches: list[Search]) -> str:
    bug = BUGS[name]
    seeds = " · ".join("not found" if one.seeds is None else str(one.seeds) for one in searches)
    checks = ", ".join(sorted({check for one in searches for check in one.checks}, key=_number))
    return f"| {name} | {bug.sentence} | {bug.run.name} | {seeds} | {bug.seeds_max} | {checks} |"


def _number(check: str) -> int:
    return int(check.removeprefix("C"))


if __name__ == "__main__":
    sys.exit(main())
