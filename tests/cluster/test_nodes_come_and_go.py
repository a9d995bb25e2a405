"""Nodes join and are removed in a row, while records, keys and a consumer group are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.testing.cluster.chaos.ground import Ground
from angarium.testing.cluster.chaos.membership import joins_and_removals

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import Run

TURNS = 2


def test_nothing_is_lost_or_out_of_order_when_nodes_come_and_go(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        line = await joins_and_removals(Ground(tmp_path, TURNS))
        assert line.violations == []
        assert line.acknowledged > 0

    run(scenario())
