"""Making certificates for those who have none: an authority, nodes, clients.

The one module that needs the library `cryptography` (the extra `tls`). Keys are on the curve P-256:
every TLS library takes them, and a handshake with them costs a fraction of one with RSA.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import InvalidArgument
from angarium.security.tls.errors import UnusableCertificate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

NO_LIBRARY: Final = (
    "making certificates needs the library cryptography: pip install 'angarium[tls]'; certificates"
    " that were made elsewhere need nothing"
)

BACKDATED: Final = datetime.timedelta(minutes=5)
"""A certificate begins so long before it is made: clocks differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a certificate is made for."""

    common_name: str
    """For people."""
    uri: str = ""
    """Who it is: angarium://CLUSTER/node/NAME or angarium://CLUSTER/client/NAME."""
    hosts: tuple[str, ...] = ()
    """DNS names and IP addresses under which it may be dialled."""


class Authority:
    """A certificate authority, its key in memory."""

    def __init__(self, certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def make(cls, name: str, *, days: int) -> Authority:
        """Return a new authority that signs for itself."""
        _check_library()
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(Names(common_name=name), _name(name), key.public_key(), days)
        return cls(_signed(_as_authority(builder), key), key)

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Authority:
        """Return the authority that lies in two files; raises `UnusableCertificate`."""
        _check_library()
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        try:
            found = x509.load_pem_x509_certificate(certificate.read_bytes())
            private: Any = serialization.load_pem_private_key(key.read_bytes(), password=None)
        except OSError as error:
            raise UnusableCertificate(f"{error.filename}: {error.strerror}") from None
        except (ValueError, TypeError) as error:
            raise UnusableCertificate(f"{certificate} or {key}: {error}") from None
        return cls(found, private)

    @property
    def pem(self) -> bytes:
        """The certificate."""
        return _pem(self._certificate)

    @property
    def key_pem(self) -> bytes:
        """The key."""
        return _key_pem(self._key)

    def issue(self, names: Names, *, days: int) -> tuple[bytes, bytes]:
        """Return a certificate and its key, for listening and for dialling."""
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
        from cryptography.x509.oid import ExtendedKeyUsageOID as Usage  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key()
        until = self._certificate.not_valid_after_utc
        days = min(days, max(1, (until - _now()).days))  # nobody believes it for longer
        builder = (
            _builder(names, self._certificate.subject, public, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([Usage.SERVER_AUTH, Usage.CLIENT_AUTH]), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        return _pem(_signed(builder, self._key)), _key_pem(key)


def names_in(path: Path) -> Names:
    """Return what the certificate in a file was made for."""
    from angarium.security.tls.certificate import Certificate  # noqa: PLC0415

    found = Certificate.in_file(path)
    return Names(
        common_name=found.common_name,
        uri=next((one for one in found.uris if one.startswith("angarium://")), ""),
        hosts=(*found.dns_names, *found.addresses),
    )


def write_secret(path: Path, content: bytes) -> None:
    """Put a file in its place in one step; its owner alone may read it, from its first byte on."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(beside, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _check_library() -> None:
    try:
        import cryptography  # noqa: F401, PLC0415
    except ImportError:
        raise InvalidArgument(NO_LIBRARY) from None


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _name(common_name: str) -> x509.Name:
    from cryptography import x509  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _builder(names: Names, issuer: x509.Name, public: Any, days: int) -> x509.CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415

    now = _now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(names.common_name))
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    alternative = _alternative_names(names)
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    return builder


def _alternative_names(names: Names) -> Sequence[x509.GeneralName]:
    from cryptography import x509  # noqa: PLC0415

    found: list[x509.GeneralName] = []
    if names.uri:
        found.append(x509.UniformResourceIdentifier(names.uri))
    for host in names.hosts:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            found.append(x509.DNSName(host))
    return found


def _as_authority(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415

    return builder.add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    ).add_extension(
        x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        ),
        critical=True,
    )


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415

    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
