"""The files that a side of a connection proves itself with."""

from __future__ import annotations

import contextlib
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from angarium.security.tls.certificate import Certificate
from angarium.security.tls.errors import UnusableCertificate

if TYPE_CHECKING:
    from pathlib import Path

    Signature = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """A certificate, its key, and the authorities that are believed; all in PEM."""

    certificate: Path
    """The certificate, and behind it those between it and the authority."""
    key: Path
    authorities: Path | None = None
    """Whose certificates of the other side are believed."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        own = (self.certificate, self.key)
        return own if self.authorities is None else (*own, self.authorities)

    def show(self, context: ssl.SSLContext) -> Certificate:
        """Let `context` show the certificate; raises `UnusableCertificate` for one that cannot be.

        One that has expired is refused, too: nobody would believe it.
        """
        shown = Certificate.in_file(self.certificate)
        if shown.expires_at <= time.time():
            when = time.strftime("%Y-%m-%d", time.gmtime(shown.expires_at))
            raise UnusableCertificate(f"{self.certificate}: it expired on {when}")
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
        except UnusableCertificate as error:
            raise UnusableCertificate(f"{self.key}: {error}") from None
        except ssl.SSLError as error:
            what = "is not the key of"
            if error.reason != "KEY_VALUES_MISMATCH":
                what = f"cannot be used ({error.reason or error}) with"
            raise UnusableCertificate(f"{self.key}: {what} {self.certificate}") from None
        except OSError as error:
            raise UnusableCertificate(f"{self.key}: {(error.strerror or '').lower()}") from None
        return shown


def believe(context: ssl.SSLContext, authorities: Path) -> None:
    """Let `context` believe the authorities of a file; raises `UnusableCertificate`."""
    try:
        context.load_verify_locations(cafile=authorities)
    except ssl.SSLError:
        raise UnusableCertificate(f"{authorities}: no certificate in PEM is in it") from None
    except OSError as error:
        raise UnusableCertificate(f"{authorities}: {(error.strerror or '').lower()}") from None


def signature(paths: tuple[Path, ...]) -> Signature:
    """Return what changes when one of the files does; links are followed, as secrets often are."""
    found: list[tuple[int, int, int, int] | None] = [None] * len(paths)
    for place, path in enumerate(paths):
        with contextlib.suppress(OSError):
            told = path.stat()
            found[place] = (told.st_dev, told.st_ino, told.st_mtime_ns, told.st_size)
    return tuple(found)


def _no_password() -> NoReturn:
    # Without this OpenSSL would ask for it on the terminal, and a node would wait there for ever.
    raise UnusableCertificate("it is encrypted; a node has nobody to ask for its password")
