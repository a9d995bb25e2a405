"""What a test says when it needs a program of the system.

    from tests.system_programs import require_program

    def test_an_io_error_stops_the_node() -> None:
        require_program("strace", apt="strace")

Where the program is missing the test skips, with the exact line that installs it. Under
`ANGARIUM_REQUIRE_SYSTEM=1`, which `.ci/run` sets after `make system`, it fails instead.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

REQUIRE_SYSTEM: Final = "ANGARIUM_REQUIRE_SYSTEM"
PACKAGES: Final = Path(__file__).resolve().parent.parent / "system-packages.txt"


def require_program(program: str, *, apt: str) -> str:
    """Return the path of `program`, or skip the calling test (or module) when it is missing.

    `apt` is the Debian package that brings it; it must be listed in system-packages.txt, so that
    `make system` installs it.
    """
    assert apt in listed_packages(), f"add {apt!r} to {PACKAGES.name}, for `make system`"
    # Servers are where only root's shell looks; without rights they run as well.
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if path is not None:
        return path
    reason = f"{program} is missing: sudo apt-get install -y {apt}"
    if os.environ.get(REQUIRE_SYSTEM) == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def listed_packages() -> list[str]:
    """Return the packages that `make system` installs."""
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
