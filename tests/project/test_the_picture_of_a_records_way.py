"""ARCHITECTURE.md shows the way of a record, with the file for each step: the files are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ROOT / "src" / "angarium"


def test_every_file_in_the_picture_is_there() -> None:
    picture = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    room = ""
    named = []
    for line in picture.splitlines():
        if title := re.match(r"[┌├]─ (\w+) ─", line):
            room = title[1]
        named += [(room, name) for name in re.findall(r"[\w/]+\.py", line)]
    assert len(named) > 20, "one for each step, at the least"
    lost = [
        name
        for room, name in named
        if not (ROOMS / name).is_file() and not (ROOMS / room / name).is_file()
    ]
    assert not lost
