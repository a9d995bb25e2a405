"""The command's own name in advice, by where its program lies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from angarium.cli.own_name import own_name

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_advice_names_the_command_as_it_can_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv" / "bin" / "angarium"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_name() == ".venv/bin/angarium"
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_name() == "angarium"
    monkeypatch.setattr(sys, "argv", ["/somewhere/angarium/__main__.py"])
    assert own_name().endswith(" -m angarium")
