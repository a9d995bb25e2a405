"""The page about the HTTP door says what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from angarium.doors.http import HttpLimits

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "http.md").read_text("utf-8")


def test_the_page_has_every_limit_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE, re.MULTILINE))
    assert rows == {one.name: str(one.default) for one in fields(HttpLimits)}
