"""What can be chosen about certificates, accounts and proofs: `[tls]`, `[users]`, `[security]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003  (`sources` reads the types of fields)
from typing import Literal

from angarium.security import PasswordHash
from angarium.security.certificate_users import CertificateUsers
from angarium.security.jwt import IssuerSettings
from angarium.security.tls import CertificateFiles, ClientCertificates, NodeTls


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """`[tls]`: certificates. With them every door speaks TLS and nothing else, and nodes prove to
    each other that they are nodes of this cluster. Files are looked at every second: new ones are
    taken without a restart. All are PEM; a relative path starts from the folder of node.toml."""

    certificate: Path | None = None
    """What this node shows, with the certificates between it and the authority behind it. "off", or
    nothing: no TLS."""

    private_key: Path | None = None
    """The key of it. Needed with `certificate`; a node cannot be asked for a password."""

    authorities: Path | None = None
    """Whose certificates are believed: those of other nodes, and those that clients show."""

    client_certificates: Literal["none", "optional", "required"] = "none"
    """Whether doors ask clients for a certificate: "none", "optional", or "required", which turns
    everybody away who has none of an authority in `authorities`."""

    cluster_certificate: Path | None = None
    """What this node shows to other nodes, where that is another one: with a certificate for
    clients from a public authority, nodes still need theirs. It has one URI
    angarium://CLUSTER/node/NAME among its names, and CLUSTER is the same on all nodes."""

    cluster_private_key: Path | None = None
    """The key of `cluster_certificate`."""

    cluster_authorities: Path | None = None
    """The authorities of nodes, where they are others than those of clients: whoever has a
    certificate of theirs with such a URI is a node."""

    def __post_init__(self) -> None:
        _check_all_or_none(self, ("certificate", "private_key"))
        _check_all_or_none(self, ("cluster_certificate", "cluster_private_key"))
        if self.certificate is None:
            for name in ("authorities", "cluster_certificate", "cluster_authorities"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}: without `certificate` there is no TLS to use it in")
        elif self.authorities is None and self.cluster_authorities is None:
            raise ValueError("authorities: other nodes could not be told from strangers without it")
        if self.client_certificates != "none" and self.authorities is None:
            raise ValueError("authorities: which clients' certificates are to be believed?")

    @property
    def is_on(self) -> bool:
        """Whether TLS is spoken."""
        return self.certificate is not None

    def opened(self) -> NodeTls | None:
        """Return what a node needs; None without TLS. Raises `UnusableCertificate`."""
        if self.certificate is None or self.private_key is None:
            return None
        files = CertificateFiles(
            certificate=self.certificate, key=self.private_key, authorities=self.authorities
        )
        cluster = CertificateFiles(
            certificate=self.cluster_certificate or self.certificate,
            key=self.cluster_private_key or self.private_key,
            authorities=self.cluster_authorities or self.authorities,
        )
        clients = ClientCertificates(self.client_certificates)
        return NodeTls(files, cluster=cluster, clients=clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """`[users]`: a line for each who has an account, `name = "hash"`."""

    hashes: dict[str, str] = field(default_factory=dict)
    """By name, the scrypt hash of the password; `angarium user hash NAME` makes the line."""

    def __post_init__(self) -> None:
        for name, text in self.hashes.items():
            if not re.fullmatch(r"[^\s:=]{1,64}", name) or not name.isprintable():
                raise ValueError(
                    f"hashes: {name!r} is no user's name: up to 64 printable characters, without"
                    " spaces, colons and equals signs"
                )
            check_hash("hashes", text, of=f"that of {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """`[security]`: who has to say who it is."""

    authentication: Literal["off", "required"] = "off"
    """"off": everybody may do everything. "required": nobody is served without a proof of who it
    is, and then may do what its grants say. The same on every node."""

    trust_peers: bool = False
    """Believe messages of nodes although nodes have no certificates (`[tls]`): only on a network
    where nobody else can reach the wire port or listen in. New nodes need a join token all the
    same. Without it a node with authentication and without TLS lets no other node in: who may speak
    as a node may do everything, and needs no password for it."""

    admin_password_file: str = ""
    """A file with the password of the first administrator, `admin`, who is made when a cluster is
    formed with authentication; ANGARIUM_ADMIN_PASSWORD does the same. Without either a password is
    made up, and told once."""

    open_health: bool = True
    """Whether anybody may ask the gRPC door how it is (`grpc.health.v1`), as load balancers do, who
    have no user. HTTP's /healthz and /readyz are always open."""

    certificate_user: Literal["off", "uri", "dns", "email"] = "off"
    """Whether a client's certificate (`[tls] client_certificates`) says who it is, if it gives no
    other proof: by which kind of its subject alternative names. Never by the common name."""

    certificate_prefix: str = ""
    """What stands in that name before the user's: angarium://production/client/ for certificates of
    `angarium tls init --cluster production`. It does not end within a word. Empty: the whole of it
    is the user's name."""

    jwt_issuer: str = ""
    """Whose JWTs are a proof: what `iss` has to be, letter by letter. Empty: nobody's."""

    jwt_audience: str = ""
    """What `aud` of a JWT has to be or contain."""

    jwt_keys: str = ""
    """Where the issuer's public keys are: a file, or an https address, both in the form of a JWKS.
    Read again every five minutes; the last good ones stay."""

    jwt_keys_ca: str = ""
    """A file with the authorities that the https address is checked against; else the system's."""

    jwt_algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    """Which signatures count; none of them may be made by who can check it."""

    jwt_leeway_s: int = 60
    """How far the issuer's clock may be from ours, up to 600 s."""

    jwt_name_claim: str = "sub"
    """Which claim says who somebody is; with dots for one inside another."""

    jwt_name_prefix: str = "jwt:"
    """Stands before that name, so that nobody takes it for a user's."""

    jwt_role_claim: str = "roles"
    """Which claim lists somebody's roles; with dots for one inside another."""

    def __post_init__(self) -> None:
        try:
            self.certificates()
        except ValueError as error:
            raise ValueError(f"certificate_{error}") from None
        if not self.jwt_issuer:
            return
        for name in ("jwt_audience", "jwt_keys"):
            if not getattr(self, name):
                raise ValueError(f"{name}: needed with `jwt_issuer`")
        if "://" in self.jwt_keys and not self.jwt_keys.startswith("https://"):
            raise ValueError("jwt_keys: a file, or an https address: else anybody chooses the keys")
        try:
            self.jwt()
        except ValueError as error:
            raise ValueError(f"jwt_{error}") from None

    def certificates(self) -> CertificateUsers | None:
        """Return what finds the users in clients' certificates; None where those are no proof."""
        if self.certificate_user == "off":
            return None
        return CertificateUsers(field=self.certificate_user, prefix=self.certificate_prefix)

    def jwt(self) -> IssuerSettings:
        """Return what makes a JWT a proof."""
        return IssuerSettings(
            issuer=self.jwt_issuer,
            audience=self.jwt_audience,
            algorithms=self.jwt_algorithms,
            leeway_s=self.jwt_leeway_s,
            name_claim=self.jwt_name_claim,
            name_prefix=self.jwt_name_prefix,
            role_claim=self.jwt_role_claim,
        )

    @property
    def is_required(self) -> bool:
        """Whether nobody is served without a proof."""
        return self.authentication == "required"

    @property
    def are_peers_trusted(self) -> bool:
        """Whether other nodes may come without a certificate."""
        return self.trust_peers or not self.is_required


def check_hash(name: str, text: str, *, of: str = "it") -> None:
    """Refuse what is no hash of a password."""
    try:
        PasswordHash.parse(text)
    except ValueError as error:
        raise ValueError(f"{name}: {of} {error}") from None


def _check_all_or_none(section: object, names: tuple[str, ...]) -> None:
    missing = [one for one in names if getattr(section, one) is None]
    if missing and len(missing) < len(names):
        there = next(one for one in names if one not in missing)
        raise ValueError(f"{missing[0]}: needed with `{there}`")
