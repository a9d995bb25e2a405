"""What every server that carries the test service is started with."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Final, TypedDict

MESSAGE_BYTES_MAX: Final = 16 << 20
"""The largest request taken; one case sends 10 MiB."""


class ServingOptions(TypedDict):
    """Where to listen, and whether encrypted."""

    port: int
    tls: bool


def serving_options() -> ServingOptions:
    """Return what the command says."""
    parser = argparse.ArgumentParser(description="Serve gRPC's test service on this machine.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls", action="store_true", help="with a certificate made for the moment")
    given = parser.parse_args()
    return {"port": given.port, "tls": given.tls}


def self_signed() -> tuple[bytes, bytes]:
    """Return a key and a certificate for this machine, in PEM, that nobody trusts."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
        whose = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        files = ("-keyout", str(key), "-out", str(certificate))
        subprocess.run(
            ["openssl", "req", "-x509", *kind, *whose, *files], check=True, capture_output=True
        )
        return key.read_bytes(), certificate.read_bytes()
