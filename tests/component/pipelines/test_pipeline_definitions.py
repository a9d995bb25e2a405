"""A pipeline's file: what it may say, and that whatever is wrong is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.pipelines.test_pipeline_definitions import WHOLE

from angarium.errors import InvalidArgument
from angarium.pipelines.definition import read_definition

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_named_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "loud-orders.toml"
    path.write_text(WHOLE, encoding="utf-8")
    assert read_definition(path).name == "loud-orders"
    path.write_text("name =", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="is no TOML"):
        read_definition(path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        read_definition(tmp_path / "nothing")
