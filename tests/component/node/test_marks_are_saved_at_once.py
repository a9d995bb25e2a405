"""What another node says of its log is on disk within a second."""

from __future__ import annotations

import asyncio

from tests.on_a_loop import eventually
from tests.unit.node.test_marks import KNOWN, OTHER, Around

from angarium.ids import replica_id
from angarium.log.peer_ends import PeerEnds
from angarium.node.marks import GATHER_S, SAVE_S


def test_what_is_heard_is_written_down_at_once() -> None:
    async def story() -> None:
        around = Around()
        running = asyncio.create_task(around.marks.run())
        for end in (700, 900):
            around.marks.note(OTHER, end)
            await eventually(
                lambda: PeerEnds(around.disk).load() == {replica_id(OTHER, KNOWN): end}  # noqa: B023
            )
        running.cancel()

    asyncio.run(story())
    assert GATHER_S + SAVE_S < 1.0
