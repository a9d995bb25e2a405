"""TLS for whoever only dials: the Python client, the command, the benchmark, Spark."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import InvalidArgument
from angarium.security.tls.contexts import client_context
from angarium.security.tls.files import CertificateFiles
from angarium.security.tls.reloading import Reloading

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from angarium.security.tls.certificate import Certificate

VARIABLES: Final = {
    "ca": "ANGARIUM_TLS_CA",
    "cert": "ANGARIUM_TLS_CERT",
    "key": "ANGARIUM_TLS_KEY",
    "server_name": "ANGARIUM_TLS_SERVER_NAME",
}
"""Where the environment says the same as the options."""

SYSTEM: Final = "system"
"""Instead of a file of authorities: those that the system believes."""

LOOK_S: Final = 1.0
"""Files are looked at when somebody dials, and no more often than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """How a client speaks TLS; without any of them it does not."""

    ca: str = ""
    """A file with the authorities that are believed, or "system" for those of the system."""
    cert: str = ""
    """A file with the client's own certificate, where nodes ask for one."""
    key: str = ""
    """The file with its key; empty: it is in the same file."""
    server_name: str = ""
    """The name that nodes have in their certificate, if not the one that is dialled."""

    def __post_init__(self) -> None:
        if self.key and not self.cert:
            raise InvalidArgument("tls.key is the key of a certificate; give tls.cert, too")
        if (self.cert or self.server_name) and not self.ca:
            raise InvalidArgument(
                'TLS needs to know whom to believe: give tls.ca, a file, or "system"'
            )

    @property
    def is_on(self) -> bool:
        """Whether TLS is spoken."""
        return bool(self.ca)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> TlsOptions:
        """Return what the environment says."""
        found = os.environ if environment is None else environment
        return cls(**{name: found.get(variable, "") for name, variable in VARIABLES.items()})

    def as_environment(self) -> dict[str, str]:
        """Return the variables that say the same."""
        return {VARIABLES[name]: text for name in VARIABLES if (text := getattr(self, name))}


class ClientTls:
    """Dials with TLS, and follows the files."""

    def __init__(self, options: TlsOptions) -> None:
        """Read the files; raises `UnusableCertificate`."""
        authorities = None if options.ca == SYSTEM else Path(options.ca).expanduser()
        files = None
        if options.cert:
            certificate = Path(options.cert).expanduser()
            key = Path(options.key).expanduser() if options.key else certificate
            files = CertificateFiles(certificate=certificate, key=key, authorities=authorities)
        paths = (authorities,) if files is None else files.paths
        self._server_name = options.server_name
        self._made = Reloading(
            "the client",
            tuple(one for one in paths if one is not None),
            lambda: client_context(authorities=authorities, files=files),
        )
        self._looked_at = time.monotonic()

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._made.look()
        return self._made.current

    def server_name(self, host: str) -> str:
        """Return the name that has to be in the certificate."""
        return self._server_name or host

    def check(self, shown: Certificate) -> None:
        """Believe it: the name was looked at in the handshake."""


def connection_arguments(host: str) -> dict[str, Any]:
    """Return what asyncio's `open_connection` needs to reach a door as the environment says."""
    tls = client_tls()
    return {} if tls is None else {"ssl": tls.context(), "server_hostname": tls.server_name(host)}


@lru_cache(maxsize=64)
def _client_tls(options: TlsOptions) -> ClientTls:
    return ClientTls(options)


def client_tls(options: TlsOptions | None = None) -> ClientTls | None:
    """Return how to dial with `options`, or those of the environment; None for no TLS."""
    chosen = TlsOptions.from_environment() if options is None else options
    return _client_tls(chosen) if chosen.is_on else None
