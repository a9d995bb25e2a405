"""Small tables of results: each version of a writer once, and never another one silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from angarium.errors import PreconditionFailed
from angarium.pipelines.tables import add_rows

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = pa.table({"records": pa.array([], pa.int64())})


def test_a_version_is_added_once_and_another_of_its_number_is_refused(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="an extra is not installed")
    path = str(tmp_path / "table")

    def add(version: int, of: str | None, *numbers: int) -> bool:
        rows = pa.table({"records": list(numbers)}) if numbers else NOTHING
        return add_rows(path, rows, writer="w", version=version, of=of)

    assert not add(0, "up to 0")  # nothing to add, and no table yet
    assert add(1, "up to 1", 10)
    assert not add(1, "up to 1", 11)  # percentiles come out differently, it is the same
    assert add(2, "up to 2", 20)
    # A checkpoint from before version 2 was put back: what it makes of that number is refused.
    for version, of in ((2, "up to 3"), (1, "up to 1")):
        with pytest.raises(PreconditionFailed, match="start with a new checkpoint"):
            add(version, of, 30)
        with pytest.raises(PreconditionFailed, match="start with a new checkpoint"):
            add(version, of)
    assert not add(2, None, 30)  # one that does not say what it is of is known by its number
    assert not add(3, "up to 4")
    assert add_rows(path, pa.table({"records": [7]}), writer="another", version=0)
    found = deltalake.DeltaTable(path).to_pyarrow_table().column("records").to_pylist()
    assert sorted(found) == [7, 10, 20]
