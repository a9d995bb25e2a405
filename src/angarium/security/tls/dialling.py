"""What whoever dials needs to know about TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl

    from angarium.security.tls.certificate import Certificate


class Dialling(Protocol):
    """How to dial with TLS."""

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""

    def server_name(self, host: str) -> str:
        """Return the name to ask for at `host`; it may be one that is checked."""

    def check(self, shown: Certificate) -> None:
        """Raise why whoever has shown `shown`, and is believed, is not whom we wanted."""
