"""A node has as many descriptors as it may have, whatever the shell began with."""

from __future__ import annotations

import resource
import subprocess
import sys

SAID = """
import resource
from angarium.app.descriptors import allow_descriptors
print(allow_descriptors({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def allowed(*, soft: int, hard: int, wanted: int) -> list[int]:
    """Ask in a process that begins with these limits; return what it was told, and what holds."""
    done = subprocess.run(
        [sys.executable, "-c", SAID.format(wanted=wanted)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        check=True,
        timeout=120,
    )
    return [int(one) for one in done.stdout.split()]


def test_a_low_limit_is_raised_as_far_as_may_be_and_a_high_one_stays() -> None:
    assert allowed(soft=200, hard=900, wanted=400) == [400, 400]
    assert allowed(soft=200, hard=900, wanted=4_000) == [900, 900]
    assert allowed(soft=500, hard=900, wanted=400) == [500, 500]
