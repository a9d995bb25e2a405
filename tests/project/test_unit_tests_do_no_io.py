"""A unit test that opens a socket or a file, starts a process or sleeps is found and told so."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TESTS = """
import asyncio, pathlib, socket, subprocess, sys, time

import pytest

def test_listens():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))

def test_connects():
    with socket.socket() as one, pytest.raises(OSError):
        one.connect(("127.0.0.1", 1))

def test_writes(pytestconfig):
    pathlib.Path(pytestconfig.rootpath, "written").write_text("x")

def test_has_a_folder(tmp_path):
    pass

def test_starts_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_sleeps():
    time.sleep(0.001)

def test_is_a_unit_test():
    assert pathlib.Path(__file__).read_text()
    asyncio.run(asyncio.sleep(0))
"""


def test_what_no_unit_test_does_is_found_and_nothing_else(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "unit" / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rE", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = set(re.findall(r"^ERROR test_some\.py::(\w+)", done.stdout, re.MULTILINE))
    assert found == {
        "test_listens",
        "test_connects",
        "test_writes",
        "test_has_a_folder",
        "test_starts_a_process",
        "test_sleeps",
    }, done.stdout
    assert "7 passed, 6 errors" in done.stdout
    assert done.stdout.count("move the test to tests/component") >= len(found)
