"""`angarium tls init | renew | show`, as a person runs them."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from tests.certificates import Folder

from angarium.cli.main import main
from angarium.security.tls import CertificateFiles, ClientTls, NodeTls, TlsOptions
from angarium.security.tls.certificate import Certificate

if TYPE_CHECKING:
    from pathlib import Path

INIT = ("--cluster", "prod", "--node", "node-1=node-1.example.org,10.0.0.1", "--client", "alice")


def test_what_is_made_can_be_used_and_is_nobody_elses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tls"
    assert main(["tls", "init", str(folder), *INIT]) == 0
    said = capsys.readouterr().out
    assert f'certificate = "{folder}/nodes/node-1.crt"' in said
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    files = CertificateFiles(
        certificate=folder / "nodes" / "node-1.crt",
        key=folder / "nodes" / "node-1.key",
        authorities=folder / "ca.crt",
    )
    shown = NodeTls(files).shown
    assert str(shown.node_name) == "angarium://prod/node/node-1"
    assert shown.dns_names == ("node-1.example.org", "localhost")
    assert "10.0.0.1" in shown.addresses
    alice = folder / "clients" / "alice"
    ClientTls(TlsOptions(ca=str(folder / "ca.crt"), cert=f"{alice}.crt", key=f"{alice}.key"))


def test_a_second_time_it_adds_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tls"
    main(["tls", "init", str(folder), *INIT])
    before = (folder / "ca.crt").read_bytes(), (folder / "nodes" / "node-1.crt").read_bytes()
    capsys.readouterr()
    assert main(["tls", "init", str(folder), *INIT]) == 0
    assert "everything is there already" in capsys.readouterr().out
    assert main(["tls", "init", str(folder), "--cluster", "prod", "--node", "node-2=b"]) == 0
    assert before == (
        (folder / "ca.crt").read_bytes(),
        (folder / "nodes" / "node-1.crt").read_bytes(),
    )
    assert (folder / "nodes" / "node-2.crt").exists()


def test_renewing_keeps_the_names_and_changes_the_keys(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    main(["tls", "init", str(folder), *INIT, "--days", "3"])
    own = folder / "nodes" / "node-1.crt"
    key, before = own.with_suffix(".key").read_bytes(), Certificate.in_file(own)
    alice = (folder / "clients" / "alice.crt").read_bytes()
    assert main(["tls", "renew", str(folder), "node-1", "--days", "30"]) == 0
    after = Certificate.in_file(own)
    assert (after.uris, after.dns_names) == (before.uris, before.dns_names)
    assert after.expires_at - before.expires_at > 26 * 86_400
    assert own.with_suffix(".key").read_bytes() != key
    assert (folder / "clients" / "alice.crt").read_bytes() == alice


def test_a_new_authority_stands_beside_the_old_one(tmp_path: Path) -> None:
    """Who has the new file believes certificates of both, whichever are renewed first."""
    folder = tmp_path / "tls"
    main(["tls", "init", str(folder), *INIT])
    ca = folder / "ca.crt"
    files = CertificateFiles(
        certificate=folder / "nodes" / "node-1.crt",
        key=folder / "nodes" / "node-1.key",
        authorities=ca,
    )
    own = files.certificate.read_bytes()
    assert main(["tls", "renew", str(folder), "--authority"]) == 0
    assert files.certificate.read_bytes() == own
    assert len(ClientTls(TlsOptions(ca=str(ca))).context().get_ca_certs()) == 2
    assert main(["tls", "renew", str(folder)]) == 0
    assert files.certificate.read_bytes() != own
    NodeTls(files)


def test_show_has_the_days_and_the_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tls"
    main(["tls", "init", str(folder), *INIT, "--days", "30"])
    capsys.readouterr()
    assert main(["tls", "show", str(folder)]) == 0
    assert "angarium://prod/client/alice" in capsys.readouterr().out
    assert main(["tls", "show", str(folder / "nodes"), "--format", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["days_left"] == 29
    assert row["uris"] == ["angarium://prod/node/node-1"]
    Folder(tmp_path).expired("old")
    assert main(["tls", "show", str(tmp_path / "old.crt")]) == 1
    assert " -2 " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init", "F", "--cluster", "A B"], "is not a name"),
        (["init", "F", "--node", "../x=a"], "is not a name"),
        (["renew", "F", "nobody"], "there is no certificate of nobody"),
        (["show", "F"], "no such file"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    given = [str(tmp_path / "none") if one == "F" else one for one in words]
    assert main(["tls", *given]) != 0
    assert said in capsys.readouterr().err


def test_a_profile_says_how_to_speak_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from argparse import Namespace

    from angarium.cli.complaints import Refusal
    from angarium.cli.profiles import choices

    file = tmp_path / "profiles.toml"
    file.write_text(
        '[profiles.a.tls]\nca = "ca.crt"\nserver_name = "node"\n[profiles.b.tls]\nca = "system"\n',
        encoding="utf-8",
    )
    environment = {"ANGARIUM_PROFILES": str(file)}
    chosen = choices(Namespace(profile="a"), environment)
    assert chosen.tls == TlsOptions(ca=str(tmp_path / "ca.crt"), server_name="node")
    assert choices(Namespace(profile="b"), environment).tls.ca == "system"
    for wrong, said in (('cert = "x"', "whom to believe"), ("ca = 1", "only ca, cert")):
        file.write_text(f"[profiles.c.tls]\n{wrong}\n", encoding="utf-8")
        with pytest.raises(Refusal, match=said):
            choices(Namespace(profile="c"), environment)
    file.write_text('[profiles.a.tls]\nca = "ca.crt"\n', encoding="utf-8")
    # What the environment says goes first, and what the profile says goes into it.
    own = {**environment, "ANGARIUM_TLS_CA": "other.crt"}
    assert choices(Namespace(profile="a"), own).tls.ca == "other.crt"
    monkeypatch.setenv("ANGARIUM_PROFILES", str(file))
    monkeypatch.delenv("ANGARIUM_TLS_CA", raising=False)
    monkeypatch.setitem(os.environ, "ANGARIUM_TLS_CA", "")
    choices(Namespace(profile="a"), os.environ)
    assert os.environ["ANGARIUM_TLS_CA"] == str(tmp_path / "ca.crt")


def test_a_certificate_for_somebody_brings_no_key_of_a_node_along(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    assert main(["tls", "init", str(folder), "--cluster", "prod", "--client", "alice"]) == 0
    assert (folder / "clients" / "alice.crt").exists()
    assert not (folder / "nodes").exists()
