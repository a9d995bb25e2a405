"""A block of lines that is drawn over itself: a live table without taking the terminal over."""

from __future__ import annotations

import shutil
from typing import IO, TYPE_CHECKING, NamedTuple

from angarium.cli.output import coloured, has_colour

if TYPE_CHECKING:
    from collections.abc import Sequence


class Line(NamedTuple):
    """A line, and the colour of all of it."""

    text: str
    colour: str = ""


class Screen:
    """The last lines of a terminal, drawn anew as often as wanted. What is above scrolls away."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._has_colour = has_colour(stream)
        self._height = 0

    def draw(self, lines: Sequence[Line]) -> None:
        """Replace what was drawn before. Lines that do not fit the terminal are cut."""
        columns, rows = shutil.get_terminal_size()
        # A block as high as the terminal would scroll, and the next one would be drawn elsewhere.
        lines = lines[: max(1, rows - 1)]
        parts = [f"\033[{min(self._height, rows - 1)}F"] if self._height else []
        for line in lines:
            text = line.text if len(line.text) < columns else f"{line.text[: columns - 2]}…"
            shown = coloured(text, line.colour, on=self._has_colour) if line.colour else text
            parts.append(f"{shown}\033[K\n")
        parts.append("\033[J")
        self._stream.write("".join(parts))
        self._stream.flush()
        self._height = len(lines)

    def say(self, sentence: str) -> None:
        """Write a line that stays, above the block."""
        if self._height:
            self._stream.write(f"\033[{self._height}F\033[J")
            self._height = 0
        self._stream.write(f"{sentence}\n")
        self._stream.flush()
