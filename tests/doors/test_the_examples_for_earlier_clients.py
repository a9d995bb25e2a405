"""What docs/reference/compat.md shows is run, word for word, but for the addresses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.doors.compat.generated_client import generated
from tests.doors.compat.profiles_on import PASSWORD, USER

if TYPE_CHECKING:
    from tests.doors.compat.profiles_on import Profiles

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "compat.md"


def examples(profile: str, language: str) -> list[str]:
    """Return the blocks in a profile's part of the page."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## `{profile}`\n")[2]
    part = part.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


def here(text: str, profiles: Profiles) -> str:
    """Return an example with the addresses of the cluster that runs."""
    one = profiles.listeners[0]
    for shown, real in (
        ("localhost:50051", one.hermes),
        ("localhost:8080", one.hermes_http),
        ("localhost:8081", one.bale),
        ("localhost:8000", one.bale_metrics[0]),
        ("localhost:8070", one.geo),
        ("admin:password", f"{USER}:{PASSWORD}"),
    ):
        text = text.replace(shown, real)
    return text


@pytest.mark.parametrize("profile", ["hermes", "bale", "geo"])
def test_the_python_of_a_profile_works(profiles: Profiles, profile: str, tmp_path: Path) -> None:
    (program,) = examples(profile, "python")
    generated(tmp_path, f"{profile}.proto")
    done = subprocess.run(
        [sys.executable, "-c", here(program, profiles)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("profile", ["hermes", "bale"])
def test_the_commands_of_a_profile_work(profiles: Profiles, profile: str, tmp_path: Path) -> None:
    (commands,) = examples(profile, "sh")
    script = "set -e\n" + here(commands, profiles).replace("curl -s", "curl -sS --fail-with-body")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
