"""What the installed PySpark can do: tests of what an older one lacks are skipped there by name."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

try:
    INSTALLED = tuple(int(part) for part in version("pyspark").split(".")[:2])
except PackageNotFoundError:
    INSTALLED = (0, 0)  # then fixtures skip everything, and say why


def needs(oldest: tuple[int, int], what: str) -> pytest.MarkDecorator:
    """Skip a test with a PySpark before `oldest`."""
    wanted = ".".join(map(str, oldest))
    return pytest.mark.skipif(
        (0, 0) < INSTALLED < oldest, reason=f"{what} needs PySpark {wanted} or newer"
    )


HAS_LIMITS = INSTALLED >= (4, 2)

stream_sink = needs((4, 1), "the sink of a stream")
limits = needs((4, 2), "a limit per trigger")


def per_trigger(records: int) -> dict[str, str]:
    """Return a limit where there is one: for tests that want several micro-batches if possible."""
    return {"maxOffsetsPerTrigger": str(records)} if HAS_LIMITS else {}
