"""h2spec: does a server keep to HTTP/2 (RFC 7540) and HPACK (RFC 7541)?"""

from __future__ import annotations

import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.judges.tools import H2SPEC
from tests.judges.verdicts import Outcome, Verdict, ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets

WAIT_SECONDS: Final = 3
"""How long h2spec waits for what it expects. The machine may be busy."""

RUN_SECONDS_MAX: Final = 900.0

UNSHOWN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def in_the_clear(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Judge a node's gRPC door."""
    yield from cases(tools, targets.broker)


def encrypted(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Judge the same server with TLS."""
    if targets.service_tls is None:
        yield Verdict("all", Outcome.SKIPPED, "no encrypted address was given")
        return
    yield from cases(tools, targets.service_tls, "--tls", "--insecure")


def cases(tools: Tools, address: str, *options: str) -> Iterator[Verdict]:
    """Yield every case that h2spec has, the strict ones too."""
    host, _, port = address.rpartition(":")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = ["--host", host, "--port", port, "--timeout", str(WAIT_SECONDS), "--strict"]
        done = ran(
            [tools.go_program(H2SPEC), *words, "--junit-report", str(report), *options],
            seconds=RUN_SECONDS_MAX,
        )
        if not report.exists():
            yield Verdict("all", Outcome.FAILED, done.stdout[-2_000:])
            return
        yield from _read(report)


def _read(report: Path) -> Iterator[Verdict]:
    # It shows bytes of frames as they are, and no XML may hold most of them.
    text = UNSHOWN.sub("?", report.read_text(encoding="utf-8", errors="replace"))
    for suite in ET.fromstring(text.encode()).iter("testsuite"):
        for number, case in enumerate(suite.findall("testcase"), 1):
            name = f"{case.get('package')}/{number} {case.get('classname')}"
            wrong = case.find("failure") if case.find("error") is None else case.find("error")
            if wrong is not None:
                told = " | ".join((wrong.text or "").split("\n"))
                yield Verdict(name, Outcome.FAILED, told)
            elif case.find("skipped") is not None:
                yield Verdict(name, Outcome.SKIPPED, "h2spec skips it for this server's answers")
            else:
                yield Verdict(name, Outcome.PASSED)
