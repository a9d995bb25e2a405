"""The page about the HTTP door says what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from angarium.doors.http import HttpLimits
from angarium.doors.http.graphql.costs import GraphqlLimits

REFERENCE = Path(__file__).resolve().parents[4] / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "limits"), [("http.md", HttpLimits), ("graphql.md", GraphqlLimits)]
)
def test_the_page_has_every_limit_with_its_default(page: str, limits: type) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", text, re.MULTILINE))
    assert rows == {one.name: str(one.default) for one in fields(limits)}
