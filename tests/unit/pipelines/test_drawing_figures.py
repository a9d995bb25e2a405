"""Figures as drawings: no peak is lost, nothing is drawn where nothing is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("pyarrow", reason="the extra angarium[arrow] is not installed")

from angarium.pipelines.analytics.drawing import drawn
from angarium.pipelines.analytics.picture import picture
from angarium.pipelines.analytics.series import narrowed, shown, topic_curves

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def row(minute: int, records: int, latency: float | None, topic: str = "orders") -> dict[str, Any]:
    starts_at = NOON + timedelta(minutes=minute)
    return {
        "topic": topic,
        "starts_at": starts_at,
        "ends_at": starts_at + timedelta(minutes=1),
        "records_per_s": records / 60,
        "bytes_per_s": records * 2.0,
        "keys": 3,
        "gap_ms_p99": 5.0,
        "latency_ms_p50": latency,
        "latency_ms_p99": latency,
        "end_to_end_ms_p50": latency,
        "end_to_end_ms_p99": latency,
        "late": 0,
    }


ROWS = [row(3, 60, None), row(0, 600, 4.0), row(1, 1200, 8.0), row(0, 6, None, "a<b")]


def test_curves_have_a_value_for_every_window_between_the_first_and_the_last() -> None:
    other, orders = topic_curves(ROWS)
    assert (other.topic, other.windows, orders.topic, orders.windows) == ("a<b", 1, "orders", 3)
    by_label = {curve.label: curve.values for curve in orders.curves}
    assert by_label["records/s"] == (10.0, 20.0, 0.0, 1.0)
    assert by_label["latency p99, ms"] == (4.0, 8.0, None, None)
    assert by_label["late records"] == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("window", [0.1, 0.2, 0.3, 0.7, 7.0])
def test_windows_that_follow_each_other_leave_no_gap(window: float) -> None:
    rows = [
        {
            **row(0, 60, 1.0),
            "starts_at": NOON + timedelta(seconds=window * at),
            "ends_at": NOON + timedelta(seconds=window * (at + 1)),
        }
        for at in range(333)
    ]
    (orders,) = topic_curves(rows)
    assert all(curve.values.count(None) == 0 for curve in orders.curves)
    assert set(orders.curves[0].values) == {1.0}
    assert len(orders.curves[0].values) == 333


def test_a_drawing_on_the_terminal() -> None:
    (orders,) = topic_curves(ROWS[:3])
    lines = drawn([orders], width=40)
    assert max(map(len, lines)) <= 40
    assert lines[0] == "orders: 3 windows"
    at = lines.index(" " * 12 + "records/s")
    assert lines[at + 1 : at + 5] == [
        "        20 │ █",
        "           │ █",
        "           │██",
        "         0 │██ ▂",
    ]
    latency = lines.index(" " * 12 + "latency p50, ms")
    assert lines[latency + 4] == "         0 │██··"
    assert not any("late records" in line for line in lines)
    assert lines[-1].startswith(" " * 11 + "└12:00:00 12:04:00")


def test_a_picture_is_well_formed_and_broken_where_nothing_is_known() -> None:
    root = ET.fromstring(picture(topic_curves(ROWS)))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a<b" in texts
    assert "records/s" in texts
    lines = [one.get("points", "") for one in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert {len(line.split()) for line in lines} == {4, 2}


@pytest.mark.parametrize(
    ("values", "width", "found"),
    [
        ([1.0, 2.0], 5, [1.0, 2.0]),
        ([1.0, 9.0, 2.0, None], 2, [9.0, 2.0]),
        ([None, None, 3.0, 1.0], 2, [None, 3.0]),
    ],
)
def test_neighbours_are_drawn_as_the_highest_of_them(
    values: list[float | None], width: int, found: list[float | None]
) -> None:
    assert narrowed(values, width) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (9999.0, "9999"), (12_300.0, "12.3k"), (1.5e6, "1.5M"), (2e9, "2G")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert shown(value) == text
