"""The completion script, in a real bash."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from angarium.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

BASH = shutil.which("bash")


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    main(["completion", "bash"])
    path = tmp_path / "completion.bash"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    return path


@pytest.mark.skipif(BASH is None, reason="bash is missing")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["angarium", "top"], ["topic", "topology"]),
        (["angarium", "topic", "de"], ["describe", "delete"]),
        (["angarium", "topic", "create", "t", "--mode", "e"], ["eventual"]),
        (["angarium", "--format", ""], ["table", "json"]),
        (["angarium", "sub", "demo", "--no-"], ["--no-follow"]),
        (["angarium", "completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash_offers_what_may_follow(script: Path, words: list[str], offered: list[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _angarium"
    assert BASH is not None
    answer = subprocess.run(
        [BASH, "-c", f'{asked}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == offered
