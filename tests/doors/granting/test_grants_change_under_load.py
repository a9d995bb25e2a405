"""A hundred changes of grants refuse no publish that is allowed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvloop
from tests.doors.granting.load import loaded
from tests.doors.matrix.world import SecuredCluster

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = 100


def test_a_hundred_changes_of_grants_fail_no_publish_at_any_door(tmp_path: Path) -> None:
    async def check() -> None:
        cluster = SecuredCluster(tmp_path)
        async with cluster:
            load = await loaded(cluster, changes=CHANGES)
        assert load.failed == []
        assert load.changes >= CHANGES
        assert all(count >= CHANGES for count in load.published.values()), load.published

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(check())
