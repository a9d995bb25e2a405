"""What runs beside a node is forgotten when it is done, and ends the node when it fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.node.config import NodeConfig
from angarium.node.node import Node

if TYPE_CHECKING:
    from pathlib import Path


async def nothing() -> None:
    """Be done at once, as an introduction to the catalog is."""


async def mistake() -> None:
    raise ValueError("a mistake")


def test_tasks_that_are_done_are_not_kept(tmp_path: Path) -> None:
    async def story() -> None:
        node = Node(NodeConfig(data_directory=tmp_path))
        for _ in range(100):
            node.run_beside(nothing)
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not node._tasks
        assert node.failure is None
        node.run_beside(mistake)
        await node.stopped.wait()
        assert isinstance(node.failure, ValueError)

    asyncio.run(story())
