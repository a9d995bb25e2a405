"""Tests against nodes in the test's own process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

import uvloop

from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

Work: TypeAlias = "Callable[[InProcessBroker], Coroutine[Any, Any, None]]"


def on_nodes(count: int) -> Callable[[Work], Callable[[Path], None]]:
    """Make a test of a coroutine that is given a broker of `count` nodes."""

    def decorated(work: Work) -> Callable[[Path], None]:
        async def with_broker(folder: Path) -> None:
            async with in_process_broker(folder, nodes=count, tick_ms=20) as broker:
                await work(broker)

        def test(tmp_path: Path) -> None:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(with_broker(tmp_path))

        test.__name__ = work.__name__
        test.__doc__ = work.__doc__
        return test

    return decorated
