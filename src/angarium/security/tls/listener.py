"""TLS for a process with one listener and no place in the cluster: a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.security.tls.certificate import Certificate
from angarium.security.tls.contexts import ClientCertificates, Door, listener_context
from angarium.security.tls.reloading import Reloading

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from angarium.security.tls.files import CertificateFiles


class ListenerTls:
    """The context of an HTTP listener, from the newest files."""

    def __init__(
        self,
        files: CertificateFiles,
        *,
        clients: ClientCertificates = ClientCertificates.NONE,
        door: Door = Door.HTTP,
    ) -> None:
        """Read the files; raises `UnusableCertificate`."""
        self._door = door

        def make() -> tuple[ssl.SSLContext, Certificate]:
            context = listener_context(files, clients=clients, door=door)
            return context, Certificate.in_file(files.certificate)

        self.made = Reloading("the listener", files.paths, make)

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        return self.made.current[0]

    def certificates(self) -> Iterator[tuple[str, Certificate]]:
        """Return the certificate in use, by what it is for."""
        yield self._door.name.lower(), self.made.current[1]
