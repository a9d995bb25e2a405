"""A local cluster that only its owner can use: its authority, its administrator, its profile.

tls/            ca.crt and ca.key, made once, and a certificate for each node
credentials     the administrator's name and password; whoever has this file may do everything
profiles.toml   while the cluster runs: how commands and clients in this folder come in
curl.conf       the same for curl

Every file has mode 600. A folder that has an authority is a secure one, and stays so.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

from angarium.app.administrators import FIRST_NAME, prepare_recovery
from angarium.app.invitations import are_pending, invite
from angarium.cli.local.folder import HOST
from angarium.client.credential_files import login_named
from angarium.client.local_access import PROFILE, PROFILES_FILE
from angarium.security.tls import Certificate, TlsOptions
from angarium.security.tls.issuing import Authority, Names, write_secret

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from angarium.cli.local.folder import Folder, LocalNode
    from angarium.client.login import LoginOptions

CLUSTER: Final = "local"
"""What certificates call the cluster. Two folders have two authorities, so one name will do."""

AUTHORITY_DAYS: Final = 3_650
NODE_DAYS: Final = 365

DAYS_LEFT_MIN: Final = 60.0
"""A start renews a node's certificate that has fewer days left."""

PASSWORD_BYTES: Final = 18


class Secured:
    """What makes a local cluster a secure one, in its folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._tls = folder.path / "tls"
        self._credentials = folder.path / "credentials"
        self._first_password = folder.path / "first-password"

    @property
    def is_there(self) -> bool:
        """Whether the folder is a secure cluster's."""
        return (self._tls / "ca.crt").exists()

    # --- before a start -------------------------------------------------------------------------

    def prepare(self, nodes: Sequence[LocalNode]) -> None:
        """Make what is missing: the authority, certificates, and an administrator.

        A cluster that was formed without users, or whose credentials are lost, is given an
        administrator the way a lost one is brought back. Raises what keeps certificates from being
        made.
        """
        self._folder.path.chmod(0o700)  # what checks passwords lies in the nodes' data
        authority = self._authority()
        for node in nodes:
            self._certify(authority, node)
        if not self._credentials.exists():
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            known = next((one for one in nodes if not self._folder.is_new(one.number)), None)
            if known is not None:
                prepare_recovery(self._folder.data(known.number), FIRST_NAME, password)
            content = f'user = "{FIRST_NAME}"\npassword = "{password}"\n'
            write_secret(self._credentials, content.encode())
        self._invite(nodes)
        if self._is_new(nodes):
            write_secret(self._first_password, self.login.password.reveal().encode() + b"\n")

    def _invite(self, nodes: Sequence[LocalNode]) -> None:
        """Have one of the nodes let those in that are new: it has its data, or forms."""
        new = [one for one in nodes if self._folder.is_new(one.number)]
        host = next((one for one in nodes if one not in new), nodes[0])
        guests = [self._token(one) for one in new if one is not host]
        if guests:
            invite(self._folder.data(host.number), guests)

    def has_invited(self, number: int, nodes: Sequence[LocalNode]) -> bool:
        """Tell whether a new node may ask to be let in, or is the one that lets in the others."""
        others = [one.number for one in nodes if one.number != number]
        return not any(are_pending(self._folder.data(one)) for one in others)

    def entry(self, node: LocalNode) -> str:
        """Return the line of `[node]` by which a node that is new comes in."""
        return f'join_token_file = "{self._token(node).name}"\n'

    def _token(self, node: LocalNode) -> Path:
        return self._folder.path / f"node-{node.number}.join-token"

    def section(self, node: LocalNode, nodes: Sequence[LocalNode]) -> str:
        """Return what a node's node.toml says about it."""
        lines = [
            "",
            "[tls]",
            f'certificate = "tls/node-{node.number}.crt"',
            f'private_key = "tls/node-{node.number}.key"',
            'authorities = "tls/ca.crt"',
            "",
            "[security]",
            'authentication = "required"',
        ]
        if node.number == 1 and self._is_new(nodes):
            lines.append(f'admin_password_file = "{self._first_password.absolute()}"')
        return "\n".join([*lines, ""])

    def _is_new(self, nodes: Sequence[LocalNode]) -> bool:
        return all(self._folder.is_new(one.number) for one in nodes)

    def _authority(self) -> Authority:
        certificate, key = self._tls / "ca.crt", self._tls / "ca.key"
        if certificate.exists():
            return Authority.read(certificate, key)
        made = Authority.make("Angarium authority of a local cluster", days=AUTHORITY_DAYS)
        self._tls.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in self._tls.glob("node-*.crt"):
            one.unlink()  # of an authority that is gone
        write_secret(key, made.key_pem)
        write_secret(certificate, made.pem)
        return made

    def _certify(self, authority: Authority, node: LocalNode) -> None:
        name = f"node-{node.number}"
        certificate, key = self._tls / f"{name}.crt", self._tls / f"{name}.key"
        now = time.time()
        if certificate.exists() and Certificate.in_file(certificate).days_left(now) > DAYS_LEFT_MIN:
            return
        names = Names(
            common_name=name,
            uri=f"angarium://{CLUSTER}/node/{name}",
            hosts=(HOST, "::1", "localhost"),
        )
        issued, private = authority.issue(names, days=NODE_DAYS)
        # The key first: whatever is left half done is done again at the next start.
        write_secret(key, private)
        write_secret(certificate, issued)

    # --- while it runs --------------------------------------------------------------------------

    def open(self, nodes: Sequence[LocalNode]) -> None:
        """Tell commands and clients of this folder how to come in."""
        servers = ", ".join(f'"{one.wire}"' for one in nodes)
        profile = f"""\
# Written by `angarium up` while it runs. From another folder: ANGARIUM_PROFILES={self.profiles}
default = "{PROFILE}"

[profiles.{PROFILE}]
servers = [{servers}]
credentials = "{self._credentials.name}"

[profiles.{PROFILE}.tls]
ca = "tls/ca.crt"
"""
        login = self.login
        write_secret(
            self.curl,
            f'cacert = "{self._tls.absolute() / "ca.crt"}"\n'
            f'user = "{login.user}:{login.password.reveal()}"\n'.encode(),
        )
        write_secret(self.profiles, profile.encode())

    def close(self) -> None:
        """Take that back: what listens on these ports next is somebody else."""
        for path in (self.profiles, self.curl, self._first_password):
            path.unlink(missing_ok=True)

    def formed(self, nodes: Sequence[LocalNode]) -> None:
        """Hear that the cluster has its nodes, and its administrator."""
        for path in (self._first_password, *map(self._token, nodes)):
            path.unlink(missing_ok=True)

    @property
    def profiles(self) -> Path:
        """The file of the profile."""
        return self._folder.path.absolute() / PROFILES_FILE

    @property
    def curl(self) -> Path:
        """The same for curl, which reads it with -K."""
        return self._folder.path / "curl.conf"

    @property
    def tls(self) -> TlsOptions:
        """Whom clients believe."""
        return TlsOptions(ca=str(self._tls.absolute() / "ca.crt"))

    @property
    def login(self) -> LoginOptions:
        """Who they are."""
        return login_named(self._credentials.name, str(self._folder.path), self._folder.path)
