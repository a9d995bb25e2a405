"""The benchmark of regions runs, in its smallest size; what it measures is for a quiet machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from benchmarks.regions import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)


def test_it_measures_and_writes_its_figures(tmp_path: Path) -> None:
    told = tmp_path / "figures.json"
    small = "--per-region 1 --one-way-ms 20 --topics 2 --rate 50 --seconds 1 --publishes 10"
    rest = "--records 1000 --only publish,reads,kill"
    main([*small.split(), *rest.split(), "--json", str(told)])
    figures = {one["what"]: one for one in json.loads(told.read_text(encoding="utf-8"))}
    assert figures["a region killed: records lost"]["regions"] == 0
    assert figures["publish to a homed topic, p50"]["regions"] > 0
    assert figures["bytes that cross for nearest reads"]["regions"] >= 0
