"""docs/rounds.md shows what was measured."""

from __future__ import annotations

import json

from benchmarks.rounds import DOORS, MODES, SHAPES
from benchmarks.rounds_page import FIGURES, PAGE, Row, page


def test_the_page_is_that_of_the_figures() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    shown = PAGE.read_text(encoding="utf-8")
    assert page(figures) == shown, "run: python -m benchmarks.rounds_page"


def test_every_load_was_put_on_every_door_in_every_mode() -> None:
    rows = [Row(**row) for row in json.loads(FIGURES.read_text(encoding="utf-8"))["rows"]]
    measured = {(row.shape, row.what) for row in rows}
    assert measured >= {
        (shape, f"{door}, {mode.name.lower()}")
        for shape in SHAPES
        for door in DOORS
        for mode in MODES
    }


def test_the_busiest_process_is_told_apart_from_the_others() -> None:
    row = Row.of(
        "one worker",
        "wire",
        records=10,
        seconds=2.0,
        p50_ms=1.0,
        p99_ms=2.0,
        client=(0.001, 20),
        servers=[(0.002, 30), (0.004, 50), (0.0, 10)],
    )
    assert (row.leader_us, row.leader_wakeups) == (400.0, 5.0)
    assert (row.follower_us, row.follower_wakeups) == (100.0, 2.0)
