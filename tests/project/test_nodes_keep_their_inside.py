"""What a node is made of stays inside: above it everybody asks by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "angarium"

INSIDE = re.compile(r"\bhost\.(replicas|catalog)\b|\bcatalog\.machine\b")
"""Import contracts cannot see these: whoever holds a `Node` could walk through it."""


@pytest.mark.parametrize("room", ["service", "doors", "app", "cli", "bench", "../angarium_compat"])
def test_nobody_above_a_node_reaches_through_it(room: str) -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted((SOURCE / room).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if INSIDE.search(line)
    ]
    assert not found, "ask `node.replicas` or `node.catalog` by name instead"
