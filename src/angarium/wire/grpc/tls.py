"""What a listener shows, and asks for, on an encrypted connection."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A certificate and its key, and whom to believe. All in PEM."""

    certificate: bytes
    """The node's certificate, and those between it and the authority."""
    key: bytes
    """The key of that certificate."""
    client_authorities: bytes | None = None
    """If given, clients must show a certificate signed by one of these."""

    def context(self) -> ssl.SSLContext:
        """Return the same as the standard library takes it: TLS 1.2 or newer, and HTTP/2 alone."""
        import tempfile  # noqa: PLC0415  (it loads much that a node without TLS needs nowhere)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        # It reads certificates from files alone; this one is gone before anybody could look.
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.certificate + b"\n" + self.key)
            file.flush()
            context.load_cert_chain(file.name)
        if self.client_authorities is not None:
            context.load_verify_locations(cadata=self.client_authorities.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context
