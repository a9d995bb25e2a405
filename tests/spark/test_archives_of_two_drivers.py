"""Two drivers, each a process with a Spark of its own, and one table: every record is in it once.

`make chaos-lake` runs the same many times over.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.spark.versions import HAS_LIMITS

if TYPE_CHECKING:
    from pathlib import Path

    from angarium import SyncClient

pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")
pytest.importorskip("pyiceberg", reason="the extra angarium[iceberg] is not installed")


def test_two_drivers_archive_each_record_once(
    client: SyncClient, servers: str, tmp_path: Path
) -> None:
    from angarium.errors import PreconditionFailed
    from angarium.spark.java import java
    from angarium.testing.spark.archives import AT_ONCE, THOUGHT_DEAD, Driver, Rounds

    try:
        java(tmp_path / "java")
    except PreconditionFailed as missing:
        pytest.skip(str(missing))
    batches = 2 if HAS_LIMITS else 1
    rounds = Rounds(client, servers, tmp_path, records=900, batches=batches)
    with ExitStack() as stack:
        drivers = [stack.enter_context(Driver(tmp_path / f"{one}.log")) for one in range(2)]
        for driver in drivers:
            driver.answer()
        for kind in (AT_ONCE, THOUGHT_DEAD):
            rounds.run(kind, *drivers)
    assert [told for one in rounds.verdicts.values() for told in one.wrong] == []
    assert len(rounds.verdicts) == 6
    # The one thought dead had its files written, in each form, and none of them counts.
    assert rounds.verdicts[THOUGHT_DEAD, "delta"].refused == 3
