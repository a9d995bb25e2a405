"""What OpenSSL says, as a person can use it."""

from __future__ import annotations

import ssl

import pytest

from angarium.wire.errors import CertificateRefused, HandshakeRefused, TlsMismatch, Unreachable
from angarium.wire.tls_refusals import refusal_of, speaks_tls


def told(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("reason", "kind", "said"),
    [
        ("WRONG_VERSION_NUMBER", TlsMismatch, "does not speak TLS"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", CertificateRefused, "give one"),
        ("TLSV1_ALERT_UNKNOWN_CA", CertificateRefused, "does not believe the authority"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", CertificateRefused, "has expired"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", CertificateRefused, "does not take our certificate"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", CertificateRefused, "no version of TLS in common"),
        ("UNSUPPORTED_PROTOCOL", HandshakeRefused, "no version of TLS in common"),
        ("SOMETHING_NEW", Unreachable, "SOMETHING_NEW"),
    ],
)
def test_each_reason_is_a_sentence(reason: str, kind: type[Exception], said: str) -> None:
    found = refusal_of(told(reason), "node-1:7400")
    assert type(found) is kind
    assert said in str(found)
    assert "node-1:7400" in str(found)


def test_plaintext_to_tls_says_what_to_give() -> None:
    assert "tls.ca (ANGARIUM_TLS_CA" in str(speaks_tls("node-1:7400"))
