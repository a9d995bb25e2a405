"""A certificate: its names, and how long it lasts.

Who somebody is stands in a subject alternative name of kind URI and nowhere else. The common name
has no rules that anybody keeps to, so it is shown to people and never believed.

A node is `angarium://CLUSTER/node/NAME`, a client `angarium://CLUSTER/client/NAME`. CLUSTER is a
name that is chosen when the authority is made, not the cluster's id: that one is drawn when the
first node forms the cluster, and its certificate has to be there before. NAME is chosen for the
same reason: a node is told its number when it is let in.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from angarium.security.tls.errors import UnusableCertificate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DAY_S: Final = 86_400.0

CLUSTER_PATTERN: Final = r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?"
NAME_PATTERN: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?"

_NODE: Final = re.compile(rf"angarium://({CLUSTER_PATTERN})/node/({NAME_PATTERN})")


class NodeName(NamedTuple):
    """Which node a certificate was made for."""

    cluster: str
    name: str

    def __str__(self) -> str:
        """Return it as it stands in the certificate."""
        return f"angarium://{self.cluster}/node/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What one certificate says."""

    uris: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """IP addresses, as text."""
    emails: tuple[str, ...] = ()
    common_name: str = ""
    """For people. Nothing is decided by it."""
    issuer: str = ""
    """The issuer's common name, for people."""
    begins_at: float
    expires_at: float
    """Seconds since 1970."""

    @classmethod
    def decoded(cls, told: Mapping[str, Any]) -> Certificate:
        """Return what `ssl` tells about a certificate."""
        names: tuple[tuple[str, str], ...] = told.get("subjectAltName", ())
        return cls(
            uris=tuple(text for kind, text in names if kind == "URI"),
            dns_names=tuple(text for kind, text in names if kind == "DNS"),
            addresses=tuple(text for kind, text in names if kind == "IP Address"),
            emails=tuple(text for kind, text in names if kind == "email"),
            common_name=_common_name(told.get("subject", ())),
            issuer=_common_name(told.get("issuer", ())),
            begins_at=float(ssl.cert_time_to_seconds(told["notBefore"])),
            expires_at=float(ssl.cert_time_to_seconds(told["notAfter"])),
        )

    @classmethod
    def in_file(cls, path: Path) -> Certificate:
        """Return the first certificate of a PEM file; raises `UnusableCertificate`."""
        try:
            # For its words: OpenSSL says the same of a file that is not there as of a broken one.
            path.open("rb").close()
            # The standard library has no public way to read a certificate that no peer has shown.
            # This is the one that its own tests use, and it has been there since Python 2.6.
            told = ssl._ssl._test_decode_cert(str(path))  # type: ignore[attr-defined]
        except OSError as error:  # an SSLError is one, too
            raise UnusableCertificate(f"{path}: {_reason(error)}") from None
        except ValueError:  # a name in it that is no text
            raise UnusableCertificate(f"{path}: a name in the certificate is no text") from None
        return cls.decoded(told)

    def days_left(self, now: float) -> float:
        """Return how many days it is still valid; below 0 if it is not any more."""
        return (self.expires_at - now) / DAY_S

    @property
    def is_of_nodes(self) -> bool:
        """Whether it names a node, or several."""
        return any(_NODE.fullmatch(uri) for uri in self.uris)

    @property
    def node_name(self) -> NodeName | None:
        """Which node it was made for; None for any other certificate, and for one of two nodes."""
        found = [match for uri in self.uris if (match := _NODE.fullmatch(uri))]
        return NodeName(found[0][1], found[0][2]) if len(found) == 1 else None


def _common_name(names: Any) -> str:
    return next((text for part in names for kind, text in part if kind == "commonName"), "")


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "there is no certificate in PEM in it"
    return (error.strerror or str(error)).lower()
