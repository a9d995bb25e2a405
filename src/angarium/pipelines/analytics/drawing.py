"""Figures drawn on a terminal, where the people are who ask: no display, no extra needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.pipelines.analytics.series import narrowed, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.pipelines.analytics.series import TopicCurves

LINES: Final = 4
"""The height of a curve."""

MARGIN: Final = 10
"""Columns for the numbers at the side."""

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"


def drawn(topics: Iterable[TopicCurves], *, width: int) -> list[str]:
    """Return the lines of a drawing, at most `width` columns wide."""
    lines: list[str] = []
    room = max(10, width - MARGIN - 2)
    for one in topics:
        lines += ["", f"{one.topic}: {one.windows} window{'s' * (one.windows != 1)}"]
        for curve in one.curves:
            if not curve.is_empty:
                lines += ["", f"{'':{MARGIN}}  {curve.label}"]
                lines += _bars(narrowed(curve.values, room))
        lines.append(_axis(one, min(room, max(len(curve.values) for curve in one.curves))))
    return lines[1:]


def _bars(values: Sequence[float | None]) -> list[str]:
    """Return columns as high as their values, in eighths of a line."""
    top = max(one for one in values if one is not None) or 1.0
    heights = [None if one is None else round(one / top * LINES * 8) for one in values]
    lines = []
    for line in range(LINES, 0, -1):
        side = shown(top) if line == LINES else "0" if line == 1 else ""
        cells = "".join(_cell(height, line) for height in heights)
        lines.append(f"{side:>{MARGIN}} │{cells}".rstrip())
    return lines


def _cell(height: int | None, line: int) -> str:
    if height is None:
        return "·" if line == 1 else " "
    filled = min(8, max(0, height - (line - 1) * 8))
    # Little is not nothing.
    return "▁" if line == 1 and filled == 0 and height > 0 else _EIGHTHS[filled]


def _axis(one: TopicCurves, room: int) -> str:
    day = one.starts_at.date() != one.ends_at.date()
    form = "%m-%d %H:%M" if day else "%H:%M:%S"
    first, last = one.starts_at.strftime(form), one.ends_at.strftime(form)
    space = max(1, room - len(first) - len(last))
    return f"{'':{MARGIN}} └{first}{' ' * space}{last}"
