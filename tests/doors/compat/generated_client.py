"""Runs a story with the client that protoc makes of a profile's schema, in a process of its own.

The profiles' schemas share names, so two of them cannot live in one process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parent
SCHEMAS = FOLDER.parents[2] / "proto" / "compat"


def generated(folder: Path, schema: str) -> None:
    """Have protoc make the client of `schema`."""
    made = subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{SCHEMAS}"),
            *(f"--python_out={folder}", f"--grpc_python_out={folder}", schema),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr


def told(folder: Path, *, schema: str, story: str, arguments: Sequence[str]) -> None:
    """Generate the client of `schema` and have it do `story`; fails with what it said."""
    generated(folder, schema)
    done = subprocess.run(
        [sys.executable, str(FOLDER / story), *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
