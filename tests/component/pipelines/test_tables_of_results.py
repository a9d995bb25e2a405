"""Small tables of results: each version of a writer once, and never another one silently."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

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


@pytest.mark.parametrize("is_new", [True, False])
def test_of_two_drivers_of_a_writer_one_adds_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="an extra is not installed")
    path = str(tmp_path / "table")

    def add(version: int) -> bool:
        rows = pa.table({"records": [version]})
        return add_rows(path, rows, writer="w", version=version, of="the same")

    if not is_new:
        assert add(0)
    write = deltalake.write_deltalake
    waiting = [True]

    def late(*args: Any, **named: Any) -> None:
        """Have another driver come first, after this one has looked at the table."""
        if waiting:
            waiting.pop()
            assert add(1)
        write(*args, **named)

    monkeypatch.setattr(deltalake, "write_deltalake", late)
    assert not add(1)
    found = deltalake.DeltaTable(path).to_pyarrow_table().column("records").to_pylist()
    assert sorted(found) == ([1] if is_new else [0, 1])


def test_drivers_that_add_at_once_add_each_version_once(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="an extra is not installed")
    path = str(tmp_path / "table")
    gate = threading.Barrier(4, timeout=60)

    def drive(_: int) -> int:
        done = 0
        for version in range(5):
            gate.wait()
            rows = pa.table({"records": [version]})
            done += add_rows(path, rows, writer="w", version=version)
        return done

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(drive, range(4))) == 5
    found = deltalake.DeltaTable(path).to_pyarrow_table().column("records").to_pylist()
    assert sorted(found) == list(range(5))
