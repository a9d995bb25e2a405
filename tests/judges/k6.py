"""k6, whose checks must all hold."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.judges.clients import new_topic
from tests.judges.tools import ROOT, STORIES
from tests.judges.verdicts import MissingTool, by_status, ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets, Verdict


def judge(_: Tools, targets: Targets) -> Iterator[Verdict]:
    """Publish, stream and subscribe with many virtual users."""
    program = shutil.which("k6", path=str(Path(sys.executable).parent))
    if program is None:
        raise MissingTool("k6 is not installed; the extra `dev` has it")
    words = ["run", "--quiet", "--no-color", "--no-usage-report"]
    given = {"GRPC": targets.broker, "TOPIC": new_topic("k6"), "PROTO": str(ROOT / "proto")}
    for name, value in given.items():
        words += ["-e", f"{name}={value}"]
    yield by_status("publish, stream, subscribe", ran([program, *words, str(STORIES / "k6.js")]))
