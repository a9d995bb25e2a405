"""Many calls at once: cancelled, slow to read, or under way while a server closes."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Final

from tests.judges.servers import interop_service
from tests.judges.verdicts import CASE_SECONDS_MAX, by_lines, ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets, Verdict

RESTARTS: Final = 4
BETWEEN_SECONDS: Final = 2.0
"""How long a server serves before it is closed."""


def judge(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """Storm the test service."""
    yield from by_lines(ran([tools.go_storms, targets.service], seconds=8 * CASE_SECONDS_MAX))


def restarts(tools: Tools, _: Targets) -> Iterator[Verdict]:
    """Close a server and open it again, under a client that must not notice.

    The servers are its own: those that are named to the judges are not ours to close.
    """
    program = tools.go_storms
    with interop_service() as address:
        port = int(address.rpartition(":")[2])
        words = [program, address, "drain"]
        calling = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        time.sleep(BETWEEN_SECONDS)
    for _again in range(RESTARTS):
        with interop_service(port=port):
            time.sleep(BETWEEN_SECONDS)
    with interop_service(port=port):
        time.sleep(BETWEEN_SECONDS)
        # It calls until its input ends, which this does: a busy machine opens servers slowly.
        told = calling.communicate(timeout=CASE_SECONDS_MAX)[0]
    yield from by_lines(subprocess.CompletedProcess(words, calling.returncode, told))
