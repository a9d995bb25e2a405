"""Bars as SVG, written by hand: a plot of eight bars needs no library.

Dark bars are brokers whose majority had fsynced what it acknowledged; light ones promise less, and
so their bars are not to be compared without thinking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from benchmarks.standing import OURS, QUESTIONS, figure_of, measured, written

if TYPE_CHECKING:
    from benchmarks.standing import Broker, Figures, Question

WIDTH: Final = 760
NAMES_WIDTH: Final = 190
BARS_WIDTH: Final = 460
TOP: Final = 56
ROW: Final = 26
BAR: Final = 18

OUR_COLOUR: Final = "#b3541e"
FSYNCED: Final = "#3d5a80"
WEAKER: Final = "#a9bcd0"


def plots(figures: Figures) -> dict[str, str]:
    """Return every plot by the name of its file."""
    return {f"{question.key}.svg": plot(question, figures) for question in QUESTIONS}


def plot(question: Question, figures: Figures) -> str:
    """Return the bars of one question."""
    bars = [
        (broker, figure)
        for broker in measured(figures)
        if (figure := figure_of(broker, question, figures)) is not None
    ]
    longest = max((figure for _, figure in bars), default=1.0)
    height = TOP + ROW * len(bars) + 12
    better = "less is better" if question.is_less_better else "more is better"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(question.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14" font-weight="bold">{escape(question.title)}</text>',
        f'<text x="12" y="40" fill="#555555">{better}; light bars: acknowledged before a majority'
        " had fsynced it</text>",
    ]
    for number, (broker, figure) in enumerate(bars):
        lines += _bar(broker, figure, y=TOP + ROW * number, length=BARS_WIDTH * figure / longest)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _bar(broker: Broker, figure: float, *, y: int, length: float) -> list[str]:
    colour = OUR_COLOUR if broker.key == OURS else FSYNCED if broker.is_fsynced else WEAKER
    text = y + BAR - 5
    return [
        f'<text x="{NAMES_WIDTH - 8}" y="{text}" text-anchor="end">{escape(broker.name)}</text>',
        f'<rect x="{NAMES_WIDTH}" y="{y}" width="{max(length, 1):.1f}" height="{BAR}"'
        f' fill="{colour}"/>',
        f'<text x="{NAMES_WIDTH + max(length, 1) + 6:.1f}" y="{text}">{written(figure)}</text>',
    ]
