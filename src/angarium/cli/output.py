"""Printing: tables for people, JSON for programs, and no control character of somebody else's."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from typing import IO, TYPE_CHECKING, Any, Final

from angarium.telemetry.logs import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

_NUMBER: Final = re.compile(r"[0-9][0-9,]*|-")


def has_colour(stream: IO[str]) -> bool:
    """Tell whether `stream` is a terminal whose owner likes colours (NO_COLOR, TERM=dumb)."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str, *, on: bool) -> str:
    """Return `text` in a colour, if colours are on."""
    return f"\033[{_CODES[colour]}m{text}\033[0m" if on and text else text


def print_json(value: Any) -> None:
    """Print one document, indented."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """Print one object on one line."""
    print(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, none: str) -> None:
    """Print a table, or the sentence `none` if there are no rows."""
    lines = table_lines(headings, rows)
    if len(lines) == 1:
        print(none)
        return
    bold = has_colour(sys.stdout)
    print(coloured(lines[0], "bold", on=bold))
    for line in lines[1:]:
        print(line)


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table. Columns of numbers stand to the right, None is a dash."""
    shown = [[_shown(cell) for cell in row] for row in rows]
    right = [
        all(_NUMBER.fullmatch(row[column]) for row in shown) for column in range(len(headings))
    ]
    widths = [
        max([len(heading), *(len(row[column]) for row in shown)])
        for column, heading in enumerate(headings)
    ]
    return [
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [[heading.upper() for heading in headings], *shown]
    ]


def text_or_base64(name: str, content: bytes | None) -> dict[str, str | None]:
    """Return bytes for JSON: as text where they are UTF-8, else in base64 under another name."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def readable(content: bytes | None) -> str:
    """Return bytes for a table: escaped, so that no record can steer the terminal."""
    return "-" if content is None else escaped(content.decode("utf-8", "backslashreplace"))


def _shown(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell) if isinstance(cell, int) else escaped(str(cell))
