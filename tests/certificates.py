"""Certificates for tests, made when they are needed: good ones, and all kinds of bad ones."""

from __future__ import annotations

import datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID, NameOID

from angarium.security.tls import CertificateFiles, ClientCertificates, NodeTls, TlsOptions
from angarium.security.tls.issuing import Authority, Names

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = "testing"
HOSTS = ("localhost", "127.0.0.1")


class Pair(NamedTuple):
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


@cache
def authority(name: str = "an authority") -> Authority:
    """Return an authority; the same one for the same name, for making one takes a while."""
    return Authority.make(name, days=30)


class Folder:
    """A folder with the certificates of one cluster."""

    def __init__(self, path: Path, whose: Authority | None = None) -> None:
        self.path = path
        self.authority = whose or authority()
        self.ca = path / "ca.crt"
        self.ca.write_bytes(self.authority.pem)

    def pair(
        self,
        file: str,
        *,
        uri: str = "",
        hosts: tuple[str, ...] = HOSTS,
        days: int = 20,
        whose: Authority | None = None,
    ) -> Pair:
        """Make a certificate."""
        names = Names(common_name="localhost", uri=uri, hosts=hosts)
        return self.write(file, *(whose or self.authority).issue(names, days=days))

    def node(self, name: str, *, cluster: str = CLUSTER, whose: Authority | None = None) -> Pair:
        """Make a node's certificate."""
        return self.pair(name, uri=f"angarium://{cluster}/node/{name}", whose=whose)

    def client(self, name: str, *, whose: Authority | None = None) -> Pair:
        """Make a client's certificate."""
        uri = f"angarium://{CLUSTER}/client/{name}"
        return self.pair(f"client-{name}", uri=uri, hosts=(), whose=whose)

    def expired(self, file: str) -> Pair:
        """Make one that was valid until yesterday."""
        now = datetime.datetime.now(datetime.UTC)
        return self._odd(file, begins=now - datetime.timedelta(days=9), days=8)

    def with_common_name_only(self, file: str) -> Pair:
        """Make one that names its host as was usual before 2000."""
        begins = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
        return self._odd(file, begins=begins, days=8, hosts=())

    def named(
        self,
        file: str,
        *names: x509.GeneralName,
        common_name: str = "somebody",
        seconds: float = 86_400.0,
        raw_names: bytes = b"",
    ) -> Pair:
        """Make one with exactly these names, however odd; `raw_names` are the bytes of them all."""
        begins = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
        lasts = datetime.timedelta(hours=1, seconds=seconds)
        extension: x509.ExtensionType | None = None
        if raw_names:
            oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
            extension = x509.UnrecognizedExtension(oid, raw_names)
        elif names:
            extension = x509.SubjectAlternativeName(names)
        return self._signed(file, begins, lasts, common_name, extension)

    def files(self, pair: Pair) -> CertificateFiles:
        """Return what a listener takes."""
        return CertificateFiles(certificate=pair.certificate, key=pair.key, authorities=self.ca)

    def node_tls(
        self, name: str = "one", *, clients: ClientCertificates = ClientCertificates.NONE
    ) -> NodeTls:
        """Return the TLS of a node."""
        return NodeTls(self.files(self.node(name)), clients=clients)

    def options(self, own: Pair | None = None, **others: str) -> TlsOptions:
        """Return what a client takes."""
        shown = {} if own is None else {"cert": str(own.certificate), "key": str(own.key)}
        return TlsOptions(**{"ca": str(self.ca), **shown, **others})

    def write(self, file: str, certificate: bytes, key: bytes) -> Pair:
        """Put a pair in its files, each in one step, as whoever renews one does."""
        pair = Pair(self.path / f"{file}.crt", self.path / f"{file}.key")
        for path, content in zip(pair, (certificate, key), strict=True):
            beside = path.with_suffix(".new")
            beside.write_bytes(content)
            beside.replace(path)
        return pair

    def _odd(
        self, file: str, *, begins: datetime.datetime, days: int, hosts: tuple[str, ...] = HOSTS
    ) -> Pair:
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.UniformResourceIdentifier(f"angarium://{CLUSTER}/node/{file}"),
        ]
        extension = x509.SubjectAlternativeName(names) if hosts else None
        return self._signed(file, begins, datetime.timedelta(days=days), "localhost", extension)

    def _signed(
        self,
        file: str,
        begins: datetime.datetime,
        lasts: datetime.timedelta,
        common_name: str,
        extension: x509.ExtensionType | None,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.load_pem_x509_certificate(self.authority.pem)
        signing = serialization.load_pem_private_key(self.authority.key_pem, password=None)
        assert isinstance(signing, ec.EllipticCurvePrivateKey)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
            .issuer_name(issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + lasts)
        )
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        signed = builder.sign(signing, hashes.SHA256())
        pem = serialization.Encoding.PEM
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.write(file, signed.public_bytes(pem), key.private_bytes(pem, form, plain))
