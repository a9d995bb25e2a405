"""A micro-batch of an archive whose commit is refused: it goes on from the marks that are there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from angarium.errors import ArchiveAdvanced
from angarium.pipelines import archive
from angarium.spark.lake import Lake, LakeForm, Stretch

if TYPE_CHECKING:
    from pathlib import Path

STRETCH = Stretch("orders", 7, 0)


class Ranges:
    """A micro-batch of one range, up to offset 10, whose tasks find no record in it."""

    tasks = 0

    def mapInArrow(self, *_: Any) -> Ranges:  # noqa: N802 (its name in Spark)
        self.tasks += 1
        return self

    def collect(self) -> list[SimpleNamespace]:
        one = {"topic": "orders", "topic_id": 7, "partition": 0}
        return [SimpleNamespace(**one, begins=0, stop=10, path="")]


def refuse(monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """Have another driver archive one offset more before each of so many commits."""
    commit = Lake.add
    left = [times]

    def add(lake: Lake, files: Any, ends: Any, *, since: Any) -> None:
        if left[0]:
            left[0] -= 1
            commit(lake, [], {STRETCH: since.get(STRETCH, 0) + 1}, since=since)
        commit(lake, files, ends, since=since)

    monkeypatch.setattr(Lake, "add", add)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"), LakeForm.PARQUET)
    made.create()
    return made


def test_it_begins_again_at_the_marks_that_are_there(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refuse(monkeypatch, times=2)
    ranges: Any = Ranges()
    archive._Archivist(str(lake.path), {"subscribe": "orders"})(ranges, 0)
    assert lake.archived_to([STRETCH]) == {STRETCH: 10}
    assert ranges.tasks == 3
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert len(warnings) == 2
    assert "another query archives the topic into the same table" in warnings[0]


def test_it_writes_nothing_if_the_other_one_has_archived_all_of_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Lake.add

    def add(other: Lake, files: Any, ends: Any, *, since: Any) -> None:
        monkeypatch.undo()
        commit(other, [], {STRETCH: 12}, since=since)
        commit(other, files, ends, since=since)

    monkeypatch.setattr(Lake, "add", add)
    ranges: Any = Ranges()
    archive._Archivist(str(lake.path), {"subscribe": "orders"})(ranges, 0)
    assert lake.archived_to([STRETCH]) == {STRETCH: 12}


def test_it_fails_with_the_reason_if_that_goes_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "REFUSALS_MAX", 2)
    refuse(monkeypatch, times=99)
    ranges: Any = Ranges()
    with pytest.raises(ArchiveAdvanced, match="end one of the queries"):
        archive._Archivist(str(lake.path), {"subscribe": "orders"})(ranges, 0)
    assert ranges.tasks == 3
