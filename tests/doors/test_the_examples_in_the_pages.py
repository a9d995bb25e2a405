"""What the reference pages show is run against a cluster, word for word."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.doors.cluster_of_doors import Doors

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize("page", ["http.md", "graphql.md"])
def test_the_commands_of_a_page_work(doors: Doors, page: str, tmp_path: Path) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    (tmp_path / "seal.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    script = "set -e\n" + "\necho\n".join(blocks).replace("localhost:7402", doors.nodes[0].http)
    script = script.replace("curl -s", "curl -sS --fail-with-body")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"errors"' not in done.stdout
