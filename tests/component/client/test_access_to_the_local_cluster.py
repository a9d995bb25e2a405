"""What a client finds in its folder counts for the cluster that runs there, and for no other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from angarium.cli.local.folder import Folder
from angarium.client import Client, ClientSettings
from angarium.client.local_access import LOCAL_FOLDER, is_locked, local_access
from angarium.errors import InvalidArgument
from angarium.security.tls import TlsOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = ("127.0.0.1", 7400)
PROFILE = """\
[profiles.local]
servers = ["127.0.0.1:7400", "127.0.0.1:7410", "example.org:7400"]
credentials = "credentials"
[profiles.local.tls]
ca = "tls/ca.crt"
"""


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a secure cluster runs, as far as anybody can see."""
    monkeypatch.chdir(tmp_path)
    for name in ("TOKEN", "USER", "PASSWORD", "TLS_CA", "SERVERS"):
        monkeypatch.delenv(f"ANGARIUM_{name}", raising=False)
    lock = Folder(LOCAL_FOLDER).lock()
    assert lock is not None
    write(LOCAL_FOLDER / "profiles.toml", PROFILE)
    write(LOCAL_FOLDER / "credentials", 'user = "admin"\npassword = "planted"\n')
    yield LOCAL_FOLDER
    os.close(lock)


def test_a_node_that_the_profile_names_is_believed_by_its_authority(running: Path) -> None:
    found = local_access([HERE])
    assert found is not None
    assert found.tls == TlsOptions(ca=str(running.absolute() / "tls" / "ca.crt"))
    assert (found.login.user, found.login.password.reveal()) == ("admin", "planted")
    assert "planted" not in repr(found)
    client = Client("127.0.0.1:7400")
    assert client.settings.tls == found.tls
    assert "admin" in repr(client._login)


@pytest.mark.parametrize(
    "servers",
    [[], [("127.0.0.1", 7500)], [("example.org", 7400)], [HERE, ("10.0.0.1", 7400)]],
    ids=["none", "another port", "another machine", "one of two"],
)
def test_nobody_else_gets_anything_of_it(running: Path, servers: list[tuple[str, int]]) -> None:
    assert local_access(servers) is None
    if servers:
        client = Client(*(f"{host}:{port}" for host, port in servers))
        assert client.settings.tls is None
        assert client._login.is_empty


def test_whoever_says_something_about_tls_says_all_of_it(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Client("127.0.0.1:7400", settings=ClientSettings(tls=TlsOptions()))
    assert told._login.is_empty
    monkeypatch.setenv("ANGARIUM_TLS_CA", "other.crt")
    assert local_access([HERE]) is None
    monkeypatch.delenv("ANGARIUM_TLS_CA")
    monkeypatch.setenv("ANGARIUM_TOKEN", "mine")
    client = Client("127.0.0.1:7400")
    assert client.settings.tls is not None
    assert "admin" not in repr(client._login)


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o666])
def test_a_profile_that_others_can_touch_is_left_alone(running: Path, mode: int) -> None:
    (running / "profiles.toml").chmod(mode)
    assert local_access([HERE]) is None


def test_a_profile_of_somebody_else_is_left_alone(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert local_access([HERE]) is None


def test_what_a_killed_cluster_left_behind_misleads_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder(LOCAL_FOLDER)
    lock = folder.lock()
    assert lock is not None
    write(LOCAL_FOLDER / "profiles.toml", PROFILE)
    write(LOCAL_FOLDER / "credentials", 'token = "t"\n')
    assert is_locked(LOCAL_FOLDER)
    assert local_access([HERE]) is not None
    os.close(lock)
    assert local_access([HERE]) is None
    # Whoever only looks keeps nobody from starting.
    assert not is_locked(LOCAL_FOLDER)
    again = folder.lock()
    assert again is not None
    os.close(again)


@pytest.mark.parametrize("text", ["", "]", "[profiles.other]", "[profiles.local]\nservers = 3"])
def test_one_of_ours_that_is_wrong_is_told(running: Path, text: str) -> None:
    write(running / "profiles.toml", text)
    with pytest.raises(InvalidArgument, match="no profile 'local'"):
        local_access([HERE])


def test_credentials_that_others_can_read_are_refused(running: Path) -> None:
    (running / "credentials").chmod(0o644)
    with pytest.raises(InvalidArgument, match="chmod 600") as caught:
        Client("127.0.0.1:7400")
    assert "planted" not in str(caught.value)
