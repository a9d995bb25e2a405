"""Puts the figures of `benchmarks.peers` into docs/performance.md, as tables and plots.

    python -m benchmarks.peers --format json > docs/peers.json
    python -m benchmarks.table

What the page shows is what this makes of docs/peers.json, and a test compares the two: a figure
cannot be changed by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.goals import goals_table
from benchmarks.plots import plots
from benchmarks.standing import (
    OURS,
    QUESTIONS,
    figure_of,
    measured,
    promise_of,
    written,
)

if TYPE_CHECKING:
    from benchmarks.standing import Broker, Figures, Question

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
FIGURES: Final = DOCS / "peers.json"
PAGE: Final = DOCS / "performance.md"
PLOTS: Final = DOCS / "plots"


def main() -> None:
    """Write the tables into the page, and the plots beside it."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")
    PLOTS.mkdir(exist_ok=True)
    for name, plot in plots(figures).items():
        (PLOTS / name).write_text(plot, encoding="utf-8")


def with_tables(page: str, figures: Figures) -> str:
    """Return the page with the tables of these figures in the place of those that are there."""
    page = _replaced(page, "brokers", brokers_table(figures))
    page = _replaced(page, "versions", versions(figures))
    return _replaced(page, "goals", goals_table(figures))


def _replaced(page: str, name: str, made: str) -> str:
    begin, end = f"<!-- made by benchmarks/table.py: {name} -->\n", "<!-- and ends -->"
    there = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    replaced, count = there.subn(lambda _: f"{begin}{made}{end}", page)
    if count != 1:
        raise SystemExit(f"{PAGE.name} has not one place for {name}, but {count}")
    return replaced


def brokers_table(figures: Figures) -> str:
    """Return a row for every broker under every promise that was measured."""
    headings = ["broker", "acknowledged when", *(question.heading for question in QUESTIONS)]
    rows = [_row(broker, figures) for broker in measured(figures)]
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def versions(figures: Figures) -> str:
    """Return what was compared, and under which Python."""
    about = figures["about"]
    unique = dict.fromkeys(peer["versions"] for peer in about["peers"].values())
    return f"{'; '.join(unique)}; {about['python']}.\n"


def _row(broker: Broker, figures: Figures) -> list[str]:
    name = f"**{broker.name}**" if broker.key == OURS else broker.name
    cells = [_cell(broker, question, figures) for question in QUESTIONS]
    return [name, promise_of(broker, figures), *cells]


def _cell(broker: Broker, question: Question, figures: Figures) -> str:
    figure = figure_of(broker, question, figures)
    if figure is None or broker.key == OURS:
        return written(figure)
    ratio = figures[question.key]["peers"][broker.key]["ratio"]
    return f"{written(figure)} ({ratio:.3g} x)"


if __name__ == "__main__":
    main()
