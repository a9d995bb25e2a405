"""`angarium serve --check` prints every setting, and no secret, not even as a hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.main import main
from angarium.security.passwords import PasswordHash

if TYPE_CHECKING:
    import pytest


def test_a_join_token_is_said_to_be_set_and_its_hash_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = str(PasswordHash.of("a token to join with"))
    monkeypatch.setenv("ANGARIUM_COMPAT_HERMES_JOIN_TOKEN", hashed)
    assert main(["serve", "--check", "--form"]) == 0
    shown = capsys.readouterr().out
    (line,) = [one for one in shown.splitlines() if "hermes_join_token" in one]
    assert "(set, not shown)" in line
    assert hashed not in shown
    assert hashed.rpartition("$")[2] not in shown


def test_one_that_is_not_set_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--check", "--form"]) == 0
    assert "not shown" not in capsys.readouterr().out
