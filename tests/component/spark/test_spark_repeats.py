"""What comes again under a number that was committed: recognised, or refused with what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.spark.test_spark_repeats import ONE

from angarium.spark.contents import (
    local_folder,
    read_up_to,
)

if TYPE_CHECKING:
    from pathlib import Path


def checkpoint(folder: Path, *ends: str, query: str = "q") -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": query}), encoding="utf-8")
    text = "\n".join(["v1", '{"batchTimestampMs":7}', *ends])
    (folder / "offsets" / "3").write_text(text, encoding="utf-8")
    return folder


def test_a_checkpoint_says_what_a_batch_has_read(tmp_path: Path) -> None:
    own = {"@start": {"orders": {"0": 0}}, "@topics": {"orders": 7}, "orders": {"0": 1}}
    found = checkpoint(tmp_path / "one", json.dumps(own))
    assert read_up_to(found, "q", 3) == ONE
    assert read_up_to(found, "another query", 3) is None
    assert read_up_to(found, "q", 4) is None
    assert read_up_to(tmp_path / "none", "q", 3) is None
    two = checkpoint(tmp_path / "two", json.dumps(own), '{"logOffset":4}', "-")
    assert read_up_to(two, "q", 3) == f'{ONE}\n{{"logOffset":4}}\n-'


def test_checkpoints_elsewhere_are_not_looked_for(tmp_path: Path) -> None:
    for written in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}"):
        assert local_folder(written) == tmp_path
    for elsewhere in ("hdfs://host/c", "s3a://bucket/c", "file://host/c", "", None):
        assert local_folder(elsewhere) is None
