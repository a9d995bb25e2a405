"""Runs a story with the client that protoc makes of a profile's schema, in a process of its own.

The profiles' schemas share names, so two of them cannot live in one process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def told(folder: Path, *, schema: str, story: str, address: str) -> None:
    """Generate the client of `schema` and have it do `story`; fails with what it said."""
    made = subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}"),
            *(f"--python_out={folder}", f"--grpc_python_out={folder}", schema),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    done = subprocess.run(
        [sys.executable, str(FOLDER / story), address],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
