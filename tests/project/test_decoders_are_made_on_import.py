"""Rooms whose work runs in threads make their decoders on import.

msgspec (0.22) crashes the process where two threads are the first to decode a type: the second one
meets the type's half-built description. A node that copied three partitions at once died of it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "angarium"
ROOMS = ("batch", "log", "machine", "raft", "replica")
MODULES = sorted(module for room in ROOMS for module in (SOURCE / room).rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda one: str(one.relative_to(SOURCE)))
def test_no_type_is_decoded_for_the_first_time_in_a_thread(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert re.findall(r"msgspec\.\w+\.decode\(|msgspec\.convert\(", text) == []
    # A decoder that a function makes would be as bad.
    assert re.findall(r"^ {4,}\w+ = msgspec\.\w+\.Decoder\(", text, re.MULTILINE) == []
