"""Figures as curves: the measures of each topic over time, and nothing where nothing is known."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

MEASURES: Final = (
    ("records_per_s", "records/s", 0.0),
    ("bytes_per_s", "bytes/s", 0.0),
    ("keys", "distinct keys", 0.0),
    ("gap_ms_p99", "gap p99, ms", None),
    ("latency_ms_p50", "latency p50, ms", None),
    ("latency_ms_p99", "latency p99, ms", None),
    ("end_to_end_ms_p50", "end to end p50, ms", None),
    ("end_to_end_ms_p99", "end to end p99, ms", None),
    ("late", "late records", 0.0),
)
"""Column, label, and what a window without records stands for."""

POINTS_MAX: Final = 100_000
"""Windows from the first to the last one. Beyond it neighbours are drawn as one."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One measure of one topic; None where nothing is known."""

    label: str
    values: tuple[float | None, ...]

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to draw."""
        return not any(self.values)


@dataclass(frozen=True, slots=True)
class TopicCurves:
    """All of one topic."""

    topic: str
    starts_at: datetime
    ends_at: datetime
    windows: int
    curves: tuple[Curve, ...]


def topic_curves(rows: Iterable[Mapping[str, Any]]) -> list[TopicCurves]:
    """Return the curves of every topic in rows of figures."""
    by_topic: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_topic.setdefault(row["topic"], []).append(row)
    return [_curves(topic, by_topic[topic]) for topic in sorted(by_topic)]


def narrowed(values: Sequence[float | None], width: int) -> list[float | None]:
    """Return at most `width` values: the highest of each group of neighbours, so that no peak is
    lost."""
    if len(values) <= width:
        return list(values)
    cuts = [at * len(values) // width for at in range(width + 1)]
    groups = [values[start:stop] for start, stop in pairwise(cuts)]
    return [max((one for one in group if one is not None), default=None) for group in groups]


def shown(value: float) -> str:
    """Return a number short enough for the side of a drawing: 1.2M, 340, 0.5."""
    for bound, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= bound:
            scaled = value / (1e3 if unit == "k" else bound)
            return f"{scaled:.3g}{unit}"
    return f"{value:.4g}"


def _curves(topic: str, rows: list[Mapping[str, Any]]) -> TopicCurves:
    rows = sorted(rows, key=lambda row: row["starts_at"])
    first, last = rows[0], rows[-1]
    window_s = (first["ends_at"] - first["starts_at"]).total_seconds()
    span_s = (last["ends_at"] - first["starts_at"]).total_seconds()
    count = min(POINTS_MAX, max(1, round(span_s / window_s)))
    # To the nearest: a fraction of a second is not exact, and a window a hair early is not the one
    # before it.
    points = [
        min(
            count - 1,
            round((row["starts_at"] - first["starts_at"]).total_seconds() / span_s * count),
        )
        for row in rows
    ]
    curves = []
    for column, label, nothing in MEASURES:
        values: list[float | None] = [nothing] * count
        for point, row in zip(points, rows, strict=True):
            if (known := row.get(column)) is not None:
                values[point] = max(float(known), values[point] or 0.0)
        curves.append(Curve(label, tuple(values)))
    return TopicCurves(topic, first["starts_at"], last["ends_at"], len(rows), tuple(curves))
