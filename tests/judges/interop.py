"""gRPC's own test clients, for Go and for Java, against its test service.

Cases about credentials of a cloud, load reports and long soaks are not run, and neither is the one
that is sent with GET: none of that is part of this server.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from tests.judges.tools import INTEROP_GO
from tests.judges.verdicts import Outcome, Verdict, by_status, ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets

CASES: Final = (
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
)
"""What both clients have."""

COMPRESSION_CASES: Final = (
    "client_compressed_unary",
    "client_compressed_unary_noprobe",
    "client_compressed_streaming",
    "client_compressed_streaming_noprobe",
    "server_compressed_unary",
    "server_compressed_streaming",
)
"""What only Java's has."""

JAVA_CLIENT: Final = "io.grpc.testing.integration.TestServiceClient"


def with_go(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Run every case that Go's client has and that applies."""
    client = tools.go_program(INTEROP_GO)
    host, _, port = targets.service.rpartition(":")
    for case in (*CASES, "pick_first_unary"):
        words = [f"-server_host={host}", f"-server_port={port}", "-use_tls=false"]
        yield by_status(case, ran([client, *words, f"-test_case={case}"]))


def with_go_encrypted(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Run the same over TLS, trusting the certificate that the server shows."""
    if targets.service_tls is None:
        yield Verdict("all", Outcome.SKIPPED, "no encrypted address was given")
        return
    client = tools.go_program(INTEROP_GO)
    host, _, port = targets.service_tls.rpartition(":")
    trusted = tools.folder / "trusted.pem"
    trusted.write_text(ssl.get_server_certificate((host, int(port))), encoding="ascii")
    for case in CASES:
        words = [f"-server_host={host}", f"-server_port={port}", "-use_tls", "-use_test_ca"]
        words += [f"-ca_file={trusted}", "-server_host_override=localhost"]
        yield by_status(case, ran([client, *words, f"-test_case={case}"]))


def with_java(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Run every case that Java's client has and that applies."""
    host, _, port = targets.service.rpartition(":")
    for case in (*CASES, *COMPRESSION_CASES, "very_large_request", "pick_first_unary"):
        words = [f"--server_host={host}", f"--server_port={port}", "--use_tls=false"]
        done = ran([*tools.java, JAVA_CLIENT, *words, f"--test_case={case}"])
        yield by_status(case, done)


def with_okhttp(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Run the same over Java's other HTTP/2, which phones use."""
    host, _, port = targets.service.rpartition(":")
    for case in CASES:
        words = [f"--server_host={host}", f"--server_port={port}", "--use_tls=false"]
        given = [*words, "--use_okhttp=true", f"--test_case={case}"]
        yield by_status(case, ran([*tools.java, JAVA_CLIENT, *given]))
