"""docs/reference/permissions.md says what the rules and the built-in roles say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from angarium.api.access import ABOUT_ACTIONS, Action

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_rules_say() -> None:
    script = [sys.executable, "scripts/permissions.py", "--check"]
    told = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout


def test_every_action_has_a_sentence() -> None:
    assert set(ABOUT_ACTIONS) == set(Action)
