"""Files are followed; what cannot be used is told once, and what was there stays."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from tests.certificates import Folder, Pair, authority
from tests.on_a_loop import eventually, on_a_loop

from angarium.security.tls import (
    Certificate,
    CertificateFiles,
    ClientTls,
    NodeTls,
    TlsWatch,
    UnusableCertificate,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_new_pair_is_taken(folder: Folder) -> None:
    tls = folder.node_tls("one")
    before = tls.made.current
    assert not tls.made.look()
    folder.node("one")
    assert tls.made.look()
    assert tls.made.current is not before
    assert tls.made.reloads == 1
    assert not tls.made.look()


def test_a_broken_file_is_told_once_and_the_old_one_stays(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    tls = folder.node_tls("one")
    before = tls.made.current
    pair = folder.node("one")
    pair.certificate.write_text("-----BEGIN CERTIFICATE-----\nbroken", encoding="utf-8")
    for _ in range(5):
        assert not tls.made.look()
    assert tls.made.current is before
    [told] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "no certificate in PEM" in told.__dict__["reason"]
    assert tls.made.refusals == 1
    folder.node("one")
    assert tls.made.look()
    assert tls.made.current is not before


def test_a_pair_that_is_replaced_file_by_file_is_no_reason_to_complain(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    tls = folder.node_tls("one")
    before = tls.made.current
    key = folder.path / "one.key"
    old_key = key.read_bytes()
    folder.node("one")
    new_key = key.read_bytes()
    key.write_bytes(old_key)
    assert not tls.made.look()
    assert tls.made.current is before
    key.write_bytes(new_key)
    assert tls.made.look()
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_links_are_followed_as_secrets_are_mounted(folder: Folder, tmp_path: Path) -> None:
    mounted = []
    for version in ("first", "second"):
        own = tmp_path / version
        own.mkdir()
        Folder(own).node("one")
        mounted.append(own)
    data = tmp_path / "data"
    data.symlink_to(mounted[0])
    files = CertificateFiles(
        certificate=data / "one.crt", key=data / "one.key", authorities=data / "ca.crt"
    )
    tls = NodeTls(files)
    beside = tmp_path / "beside"
    beside.symlink_to(mounted[1])
    beside.replace(data)
    assert tls.made.look()
    assert folder.ca.exists()


@pytest.mark.parametrize("kind", ["expired", "another key", "no key", "nothing", "nameless"])
def test_files_that_cannot_be_used(folder: Folder, kind: str) -> None:
    pair = folder.node("one")
    if kind == "expired":
        pair, said = folder.expired("one"), "it expired on 20"
    elif kind == "another key":
        pair.key.write_bytes(folder.node("two").key.read_bytes())
        said = "is not the key of"
    elif kind == "no key":
        pair.key.unlink()
        said = "no such file"
    elif kind == "nothing":
        pair.certificate.unlink()
        said = "no such file"
    else:
        pair, said = folder.client("alice"), "angarium tls init"
    with pytest.raises(UnusableCertificate, match=said):
        NodeTls(folder.files(pair))


def test_a_key_with_a_password_is_refused_instead_of_asking_on_the_terminal(
    folder: Folder,
) -> None:
    pair = folder.node("one")
    key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    pair.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"a secret"),
        )
    )
    with pytest.raises(UnusableCertificate, match="encrypted"):
        NodeTls(folder.files(pair))


def test_an_authority_that_is_taken_out_is_not_believed_any_more(folder: Folder) -> None:
    other = authority("another authority")
    folder.ca.write_bytes(folder.authority.pem + other.pem)
    client = ClientTls(folder.options())
    assert len(client.context().get_ca_certs()) == 2
    folder.ca.write_bytes(folder.authority.pem)
    os.utime(folder.ca, ns=(1, 1))
    client._looked_at -= 10
    assert len(client.context().get_ca_certs()) == 1


@on_a_loop
async def test_a_watch_looks_by_itself(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    tls = folder.node_tls("one")
    watch = TlsWatch([tls.made], tls.certificates)
    await watch.start()
    try:
        folder.node("one")
        await eventually(lambda: tls.made.reloads == 1)
    finally:
        await watch.stop()
    assert {use for use, _ in tls.certificates()} == {"wire", "grpc", "http", "nodes"}


def test_a_name_that_is_no_text_makes_a_certificate_unusable(folder: Folder) -> None:
    name = b"\x86\x05a://\xff"
    odd = folder.named("odd", raw_names=bytes([0x30, len(name)]) + name)
    with pytest.raises(UnusableCertificate, match="no text"):
        Certificate.in_file(odd.certificate)


@pytest.mark.parametrize(
    "uri", ["angarium://testing/node/two", "angarium://elsewhere/node/one"], ids=["name", "cluster"]
)
def test_a_node_keeps_the_name_that_it_began_with(
    folder: Folder, caplog: pytest.LogCaptureFixture, uri: str
) -> None:
    tls = folder.node_tls("one")
    before = tls.made.current
    folder.pair("one", uri=uri)
    for _ in range(3):
        assert not tls.made.look()
    assert tls.made.current is before
    [told] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "a renewed certificate keeps its name" in told.__dict__["reason"]
    folder.node("one")
    assert tls.made.look()
    # A process that begins with it is another matter: what its number is bound to decides.
    folder.pair("one", uri=uri)
    assert str(NodeTls(folder.files(_pair(folder))).name) == uri


def _pair(folder: Folder) -> Pair:
    return Pair(folder.path / "one.crt", folder.path / "one.key")
