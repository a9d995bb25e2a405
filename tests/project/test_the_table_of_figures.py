"""docs/performance.md shows what was measured, line by line."""

from __future__ import annotations

import json

import pytest
from benchmarks.table import FIGURES, LINES, PAGE, with_table


def test_the_table_in_the_page_is_that_of_the_figures() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page, figures) == page, "run: python -m benchmarks.table"


def test_every_figure_has_its_goal() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert sorted(figures) == sorted(line.key for line in LINES)


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(SystemExit):
        with_table("# a page\n", {})
