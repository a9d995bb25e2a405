"""Where to connect: flags, environment, profiles, the cluster in this folder, the default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from angarium.addresses import Address
from angarium.cli.complaints import Refusal
from angarium.cli.grammar import grammar
from angarium.cli.local.folder import Folder, LocalNode, State
from angarium.cli.main import main
from angarium.cli.profiles import LOCAL_SERVERS, Choices, choices, profiles_path
from angarium.client.local_access import LOCAL_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

PROFILES = """
default = "local"
[profiles.local]
servers = ["a:1", "b:2"]
[profiles.far]
servers = "c:3"
format = "json"
timeout = 30
"""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def chosen(*flags: str, profiles: str = "", **environment: str) -> Choices:
    with open("profiles.toml", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(profiles)
    options = grammar().parse_args(["topic", "list", *flags])
    return choices(options, {"ANGARIUM_PROFILES": "profiles.toml", **environment})


def test_without_anything_a_local_cluster_is_meant() -> None:
    assert chosen() == Choices(are_guessed=True)
    assert chosen().servers == LOCAL_SERVERS


def test_a_flag_wins_over_the_environment_and_that_over_the_profile() -> None:
    assert chosen(profiles=PROFILES).servers == (Address("a", 1), Address("b", 2))
    assert chosen(profiles=PROFILES, ANGARIUM_SERVERS="d:4").servers == (Address("d", 4),)
    flags = ("--servers", "e:5,f:6")
    found = chosen(*flags, profiles=PROFILES, ANGARIUM_SERVERS="d:4").servers
    assert found == (Address("e", 5), Address("f", 6))


def test_a_profile_is_chosen_by_flag_or_environment() -> None:
    far = Choices(servers=(Address("c", 3),), format="json", timeout_s=30)
    assert chosen("--profile", "far", profiles=PROFILES) == far
    assert chosen(profiles=PROFILES, ANGARIUM_PROFILE="far") == far
    assert chosen("--profile", "far", "--timeout", "5", profiles=PROFILES).timeout_s == 5


def test_the_cluster_that_runs_in_this_folder_is_found() -> None:
    folder = Folder(LOCAL_FOLDER)
    lock = folder.lock()
    assert lock is not None
    nodes = (LocalNode(number=1, wire_port=9000), LocalNode(number=2, wire_port=9010))
    folder.write_state(State(pid=os.getpid(), nodes=nodes))
    assert chosen().servers == (Address("127.0.0.1", 9000), Address("127.0.0.1", 9010))
    os.close(lock)
    assert chosen().servers == LOCAL_SERVERS


@pytest.mark.parametrize(
    ("profiles", "said"),
    [
        ("x = 1", "x:"),
        ("[profiles.a]\nserver = 'a:1'", "server"),
        ("[profiles.a]\nservers = 'a'", "HOST:PORT"),
        ("[profiles.a]\nservers = 7", "not a list of addresses"),
        ("[profiles.a]\nformat = 'xml'", "xml"),
        ("[profiles.a]\ntimeout = 'long'", "timeout"),
        ("default = 3", "default"),
        ("default = 'nobody'", "nobody"),
        ("]", "profiles.toml"),
    ],
)
def test_a_wrong_profile_is_told_with_its_place(profiles: str, said: str) -> None:
    with pytest.raises(Refusal, match=r"profiles\.toml") as refused:
        chosen(profiles=profiles)
    assert said in str(refused.value)


def test_wrong_servers_are_told_by_where_they_were_written() -> None:
    with pytest.raises(Refusal, match=r"^--servers: "):
        chosen("--servers", "nowhere")
    with pytest.raises(Refusal, match=r"^ANGARIUM_SERVERS: "):
        chosen(ANGARIUM_SERVERS=":")


def test_profiles_lie_where_configuration_lies() -> None:
    assert str(profiles_path({"XDG_CONFIG_HOME": "/c"})) == "/c/angarium/profiles.toml"
    assert profiles_path({}).parts[-3:] == (".config", "angarium", "profiles.toml")


def test_profiles_are_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.toml").write_text(PROFILES, encoding="utf-8")
    monkeypatch.setenv("ANGARIUM_PROFILES", str(tmp_path / "p.toml"))
    assert main(["profile", "list"]) == 0
    assert "local  yes      a:1,b:2" in capsys.readouterr().out
