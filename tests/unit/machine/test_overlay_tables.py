"""Sheets over tables: what is written ahead, and what shows through."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.machine.overlay import Overlay, Recency, RecencyOverlay


def test_reads_fall_through_and_writes_stay_above() -> None:
    base = {1: "one", 2: "two"}
    sheet = Overlay(base)
    sheet[1] = "uno"
    del sheet[2]
    sheet[3] = "tre"
    assert [sheet.get(key) for key in (1, 2, 3, 4)] == ["uno", None, "tre", None]
    assert base == {1: "one", 2: "two"}


def test_a_row_leaves_the_sheet_with_its_last_write_only() -> None:
    base: dict[int, str] = {}
    sheet = Overlay(base)
    sheet.step = 1
    sheet[1] = "first"
    sheet.step = 2
    sheet[1] = "second"
    base[1] = "first"
    sheet.forget(1)
    assert sheet.get(1) == "second"
    base[1] = "second"
    sheet.forget(2)
    assert len(sheet) == 0
    assert sheet.get(1) == "second"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 3)), max_size=60),
    st.lists(st.integers(0, 5), unique=True),
)
def test_a_sheet_behaves_like_the_table_it_is_ahead_of(
    writes: list[tuple[int, bool, int]], start: list[int]
) -> None:
    base: Recency[int, int] = Recency()
    model: Recency[int, int] = Recency()
    for key in start:
        base[key] = model[key] = -1
    sheet = RecencyOverlay(base)
    log: list[tuple[int, int | None]] = []
    applied = 0
    for key, remove, commits in writes:
        sheet.step = len(log) + 1
        if remove and key in model:
            del sheet[key]
            del model[key]
            log.append((key, None))
        else:
            sheet[key] = model[key] = len(log)
            log.append((key, len(log)))
        for _ in range(min(commits, len(log) - applied)):
            at, row = log[applied]
            applied += 1
            if row is None:
                del base[at]
            else:
                base[at] = row
            sheet.forget(applied)
        assert [sheet.get(one) for one in range(6)] == [model.get(one) for one in range(6)]
        if model:
            assert sheet.oldest() == model.oldest()
        assert len(sheet) <= len(log) - applied
