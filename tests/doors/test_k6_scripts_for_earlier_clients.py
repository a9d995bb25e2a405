"""k6 speaks to every profile with scripts that have thresholds; it fails when one is not met."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.doors.compat.profiles_on import PASSWORD, USER

if TYPE_CHECKING:
    from tests.doors.compat.profiles_on import Profiles

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "benchmarks" / "k6"

LATENCY_MS = 2_000
"""What is asked for here, where the machine may be busy with other tests: the scripts' own bound is
for a machine that is not."""


def k6() -> str:
    """Return the k6 that the project installs, beside the Python that runs this."""
    found = shutil.which("k6", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    assert found, "k6 comes with the extra `dev`"
    return found


def run_k6(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    return subprocess.run(
        [k6(), "run", "--quiet", "--no-color", "--no-usage-report", *given, str(SCRIPTS / script)],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("profile", ["hermes", "bale", "geo"])
def test_every_threshold_of_a_profile_holds(
    profiles: Profiles, profile: str, tmp_path: Path
) -> None:
    one = profiles.listeners[2]
    done = run_k6(
        f"{profile}.js",
        tmp_path,
        GRPC=getattr(one, profile),
        HTTP=one.hermes_http,
        GEO_USER=USER,
        GEO_PASSWORD=PASSWORD,
        P95_MS=str(LATENCY_MS),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_threshold_that_is_not_met_fails_the_run(profiles: Profiles, tmp_path: Path) -> None:
    """So that the tests above mean something."""
    one = profiles.listeners[0]
    done = run_k6(
        "hermes.js", tmp_path, GRPC=one.hermes, HTTP=one.hermes_http, P95_MS="0", MESSAGES="5"
    )
    assert done.returncode == 99, done.stdout + done.stderr
