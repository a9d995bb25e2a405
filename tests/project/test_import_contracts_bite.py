"""The import contracts themselves: each is broken on purpose, and each must notice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = "import sys; from importlinter.cli import lint_imports_command as lint; sys.exit(lint())"


@pytest.fixture(scope="module")
def copied_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the source; what the linter has read of it once it reads no more."""
    folder = tmp_path_factory.mktemp("source")
    for package in ("angarium", "angarium_compat"):
        shutil.copytree(
            ROOT / "src" / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts on the source in `folder`."""
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=folder,
        # The copy must be found before the editable install.
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("raft/intruder.py", "import time", "decide without doing"),
        ("machine/intruder.py", "from random import random", "decide without doing"),
        ("batch/intruder.py", "import os.path", "decide without doing"),
        ("batch/intruder.py", "import pyarrow", "pyarrow only in batch.arrow, spark and pipelines"),
        ("backup/intruder.py", "import obstore.store", "obstore only in backup.objects"),
        ("wire/intruder.py", "import grpc.aio", r"bench\s+and\s+proto"),
        ("doors/intruder.py", "from google.protobuf import any_pb2", r"bench\s+and\s+proto"),
        ("client/intruder.py", "import pyspark.sql", "pyspark only in spark and pipelines"),
        ("spark/intruder.py", "import angarium.node.node", "Spark is a client"),
        (
            "service/intruder.py",
            "import angarium.node.node",
            "node by own_node alone",
        ),
        (
            "doors/http/intruder.py",
            "import angarium.replica",
            "Doors see no node, but for the wire's",
        ),
        ("../angarium_compat/intruder.py", "import angarium.service", "see what doors see"),
        ("doors/intruder.py", "import angarium_compat.bale", "listeners for earlier brokers"),
        ("log/intruder.py", "import time", "take time and chance from their caller"),
        ("raft/intruder.py", "import angarium.log.disk", "Rooms import downwards only"),
        ("raft/intruder.py", "import angarium.batch", "Rooms import downwards only"),
        ("attic.py", "", "Rooms import downwards only"),
    ],
)
def test_a_broken_contract_is_noticed(
    copied_source: Path, module: str, line: str, contract: str
) -> None:
    intruder = copied_source / "angarium" / module
    intruder.write_text(f"{line}\n", encoding="utf-8")
    try:
        answer = lint(copied_source)
    finally:
        intruder.unlink()
    assert answer.returncode == 1
    assert re.search(f"{contract} BROKEN", answer.stdout), answer.stdout
