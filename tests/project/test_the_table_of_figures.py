"""docs/performance.md shows what was measured, line by line and bar by bar."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks.goals import GOALS
from benchmarks.plots import plots
from benchmarks.standing import BROKERS, QUESTIONS
from benchmarks.table import FIGURES, PAGE, PLOTS, brokers_table, with_tables


@pytest.fixture
def figures() -> Any:
    return json.loads(FIGURES.read_text(encoding="utf-8"))


def test_the_tables_in_the_page_are_those_of_the_figures(figures: Any) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, figures) == page, "run: python -m benchmarks.table"


def test_the_plots_are_those_of_the_figures_and_the_page_shows_them_all(figures: Any) -> None:
    made = plots(figures)
    assert {path.name for path in PLOTS.iterdir()} == set(made)
    page = PAGE.read_text(encoding="utf-8")
    for name, plot in made.items():
        ElementTree.fromstring(plot)
        shown = (PLOTS / name).read_text(encoding="utf-8")
        assert shown == plot, "run: python -m benchmarks.table"
        assert f"(plots/{name})" in page


def test_every_figure_has_its_goal(figures: Any) -> None:
    assert sorted(figures) == sorted(["about", *(goal.key for goal in GOALS)])


def test_a_broker_has_a_row_with_its_promise_and_a_bar_once_it_was_measured(figures: Any) -> None:
    for beside in [figures["about"], *(figures[question.key] for question in QUESTIONS)]:
        beside.get("peers", {}).pop(BROKERS[-1].key, None)
    rows = brokers_table(figures).splitlines()
    assert not any(f"| {BROKERS[-1].name} |" in row for row in rows)
    for broker in BROKERS[1:]:
        figures["about"]["peers"][broker.key] = {"versions": "", "promise": f"as {broker.key} says"}
        for question in QUESTIONS:
            beside = figures[question.key].setdefault("peers", {})
            beside[broker.key] = {"figure": 1234.0, "ratio": 2.0}
    full = brokers_table(figures).splitlines()
    assert len(full) == 2 + len(BROKERS) > len(rows)
    for broker in BROKERS[1:]:
        assert any(f"| {broker.name} | as {broker.key} says | 1,234 (2 x) |" in row for row in full)
        assert all(f">{broker.name}</text>" in plot for plot in plots(figures).values())


def test_a_page_without_a_place_for_the_table_is_refused(figures: Any) -> None:
    with pytest.raises(SystemExit):
        with_tables("# a page\n", figures)
