"""Certificates change while publishers of every kind go on, and none of their publishes fails.

`make rotations` does the same a thousand times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.rotations import rotated

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import Run

CHANGES = 10
PUBLISHERS = 6


def test_ten_changes_fail_no_publish_over_wire_grpc_and_https(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        report = await rotated(tmp_path, CHANGES)
        assert report.failures == []
        assert report.taken == 3 * CHANGES
        assert report.authorities == 1
        assert len(report.tallies) == PUBLISHERS
        for one in report.tallies:
            assert one.acknowledged > 0, one.name
            if "each change" in one.name:
                assert one.connections > CHANGES / 2, one.name
        assert report.stored == report.acknowledged

    run(scenario())
