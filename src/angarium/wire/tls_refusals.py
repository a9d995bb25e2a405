"""What a failed TLS handshake means, in a sentence that says what to do."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from angarium.wire.errors import (
    CertificateRefused,
    ClosedAfterHandshake,
    HandshakeRefused,
    TlsMismatch,
    Unreachable,
)

if TYPE_CHECKING:
    from angarium.wire.errors import WireError

ALERT: Final = b"\x15\x03"
"""How TLS begins to say that something is wrong: what a listener with TLS answers to plaintext."""

_SHORT: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "RECORD_LAYER_FAILURE"}
)
"""What OpenSSL makes of an answer that is not TLS."""

_OF_OURS: Final = {
    "CERTIFICATE_REQUIRED": "it asks for a client's certificate; give one (tls.cert and tls.key)",
    "UNKNOWN_CA": "it does not believe the authority of our certificate (tls.cert)",
    "CERTIFICATE_EXPIRED": "our certificate (tls.cert) has expired",
    "BAD_CERTIFICATE": "it does not take our certificate (tls.cert)",
    "CERTIFICATE_UNKNOWN": "it does not take our certificate (tls.cert)",
    "UNSUPPORTED_CERTIFICATE": "our certificate (tls.cert) was not made for this",
    "HANDSHAKE_FAILURE": "the two sides have no way of TLS in common, or it asks for a client's"
    " certificate (tls.cert)",
    "PROTOCOL_VERSION": "the two sides have no version of TLS in common; nodes speak 1.2 and 1.3",
}
"""By the alert that the other side sent: what it says about us."""


def speaks_tls(where: str) -> TlsMismatch:
    """Return why plaintext is not understood there."""
    return TlsMismatch(
        f"{where} speaks TLS, and it was dialled without: say whom to believe with tls.ca"
        " (ANGARIUM_TLS_CA, or ca in [profiles.NAME.tls]); a node needs the section [tls] in its"
        " node.toml"
    )


def closed_after_handshake(where: str) -> ClosedAfterHandshake:
    """Return what it may mean that a connection ended between TLS and the first word."""
    return ClosedAfterHandshake(
        f"{where} closed the connection right after the TLS handshake: it may not believe our"
        " certificate (tls.cert), or be on its way down"
    )


def refusal_of(error: ssl.SSLError, where: str) -> WireError:
    """Return what `error`, met when dialling `where`, means."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return CertificateRefused(
            f"the certificate of {where} is not believed: {error.verify_message}; is it of an"
            " authority in tls.ca, still valid, and made for the name that is dialled"
            " (tls.server_name)?"
        )
    for alert, what in _OF_OURS.items():
        if reason.endswith(f"ALERT_{alert}"):
            return CertificateRefused(f"{where} refuses us: {what}")
    if reason in _SHORT:
        return TlsMismatch(
            f"{where} does not speak TLS, and it was dialled with it: take tls.ca away, or dial a"
            " port that does"
        )
    if reason in {"UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"}:
        return HandshakeRefused(f"{where} and we have no version of TLS in common")
    return Unreachable(f"{where} cannot be reached with TLS: {reason or error}")
