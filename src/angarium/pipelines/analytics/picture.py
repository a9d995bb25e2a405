"""Figures drawn as a picture (SVG): one file that every browser shows, made without a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from angarium.pipelines.analytics.series import narrowed, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.pipelines.analytics.series import Curve, TopicCurves

WIDTH: Final = 960
POINTS: Final = 860
"""A curve has at most one point per unit of its width."""

_LEFT: Final = 80
_HEIGHT: Final = 90
_GAP: Final = 46
_HEAD: Final = 40
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#333}.topic{font-weight:600;font-size:16px}"
    ".curve{fill:none;stroke:#1a6fb5;stroke-width:1.5}.dot{fill:#1a6fb5}.frame{stroke:#bbb}"
)


def picture(topics: Iterable[TopicCurves]) -> str:
    """Return an SVG document with the curves of all topics."""
    parts: list[str] = []
    at = 0
    for one in topics:
        at += _HEAD
        span = f"{one.starts_at:%Y-%m-%d %H:%M:%S} to {one.ends_at:%Y-%m-%d %H:%M:%S} UTC"
        parts.append(f'<text class="topic" x="{_LEFT}" y="{at}">{escape(one.topic)}</text>')
        parts.append(f'<text x="{WIDTH - 20}" y="{at}" text-anchor="end">{span}</text>')
        for curve in one.curves:
            if not curve.is_empty:
                at += _GAP
                parts += _curve(curve, at)
                at += _HEIGHT
    style = f"<style>{_STYLE}</style>"
    size = f'width="{WIDTH}" height="{at + 30}" viewBox="0 0 {WIDTH} {at + 30}"'
    back = '<rect width="100%" height="100%" fill="#fff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}{back}'
    return "\n".join([head, *parts, "</svg>", ""])


def _curve(curve: Curve, top: int) -> list[str]:
    values = narrowed(curve.values, POINTS)
    highest = max(one for one in values if one is not None) or 1.0
    step = (WIDTH - 20 - _LEFT) / max(1, len(values) - 1)
    bottom = top + _HEIGHT
    parts = [
        f'<text x="{_LEFT}" y="{top - 8}">{escape(curve.label)}</text>',
        f'<text x="{_LEFT - 8}" y="{top + 5}" text-anchor="end">{shown(highest)}</text>',
        f'<text x="{_LEFT - 8}" y="{bottom + 5}" text-anchor="end">0</text>',
        f'<line class="frame" x1="{_LEFT}" y1="{bottom}" x2="{WIDTH - 20}" y2="{bottom}"/>',
    ]
    run: list[str] = []
    # A curve is broken where nothing is known, instead of pretending what was there.
    for number, value in enumerate([*values, None]):
        if value is not None:
            x, y = _LEFT + number * step, bottom - value / highest * _HEIGHT
            run.append(f"{x:.1f},{y:.1f}")
        elif run:
            parts.append(_line(run))
            run = []
    return parts


def _line(points: list[str]) -> str:
    if len(points) == 1:
        x, y = points[0].split(",")
        return f'<circle class="dot" cx="{x}" cy="{y}" r="2"/>'
    return f'<polyline class="curve" points="{" ".join(points)}"/>'
