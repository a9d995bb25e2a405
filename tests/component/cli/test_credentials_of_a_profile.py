"""A profile names a file with credentials, which only its owner may read."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest

from angarium.cli.complaints import Refusal
from angarium.cli.profiles import choices

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("ANGARIUM_TOKEN", "ANGARIUM_USER", "ANGARIUM_PASSWORD")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANGARIUM_PROFILES", str(tmp_path / "profiles.toml"))
    for name in NAMES:
        # Set first, so that what the command sets is taken back afterwards.
        monkeypatch.setenv(name, "")
    (tmp_path / "profiles.toml").write_text(
        'default = "one"\n[profiles.one]\nservers = ["h:1"]\ncredentials = "one.credentials"\n'
    )
    return tmp_path


def write(folder: Path, text: str, mode: int = 0o600) -> None:
    path = folder / "one.credentials"
    path.write_text(text)
    path.chmod(mode)


def test_what_the_file_says_becomes_the_environment_of_the_command(folder: Path) -> None:
    write(folder, 'user = "alice"\npassword = "planted"\n')
    chosen = choices(Namespace())
    assert os.environ["ANGARIUM_USER"] == "alice"
    assert os.environ["ANGARIUM_PASSWORD"] == "planted"
    assert "planted" not in repr(chosen)


def test_the_environment_wins_over_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, 'token = "of the file"\n')
    monkeypatch.setenv("ANGARIUM_TOKEN", "of the environment")
    choices(Namespace())
    assert os.environ["ANGARIUM_TOKEN"] == "of the environment"


def test_a_profile_that_nobody_asked_for_has_no_secrets_for_other_servers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, 'token = "of the file"\n')
    choices(Namespace(servers="elsewhere:1"))
    assert os.environ["ANGARIUM_TOKEN"] == ""
    choices(Namespace(servers="h:1"))
    assert os.environ["ANGARIUM_TOKEN"] == "of the file"
    monkeypatch.setenv("ANGARIUM_TOKEN", "")
    choices(Namespace(servers="elsewhere:1", profile="one"))
    assert os.environ["ANGARIUM_TOKEN"] == "of the file"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ('token = "planted"\n', 0o644, "chmod 600"),
        ('token = "planted"\n', 0o640, "chmod 600"),
        ("token = planted\n", 0o600, "no TOML"),
        ('user = "alice"\n', 0o600, "password"),
        ('secret = "planted"\n', 0o600, "only user"),
        ('token = "planted"\nuser = "a"\npassword = "b"\n', 0o600, "not both"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_and_not_quoted(
    folder: Path, text: str, mode: int, said: str
) -> None:
    write(folder, text, mode)
    with pytest.raises(Refusal, match=said) as caught:
        choices(Namespace())
    assert "planted" not in str(caught.value)


def test_a_missing_file_and_secrets_in_the_profile_are_refused(folder: Path) -> None:
    with pytest.raises(Refusal, match="No such file"):
        choices(Namespace())
    (folder / "profiles.toml").write_text('default = "one"\n[profiles.one]\ntoken = "planted"\n')
    with pytest.raises(Refusal, match="file of their own") as caught:
        choices(Namespace())
    assert "planted" not in str(caught.value)
