"""What takes too long ends with an error that everybody knows how to take."""

from __future__ import annotations

import asyncio

import pytest

from angarium.errors import AngariumError
from angarium.node.deadlines import in_time
from angarium.wire import DeadlineExceeded


def test_what_takes_too_long_is_a_deadline_exceeded() -> None:
    async def scene() -> None:
        async with in_time(0.0, "waiting for nothing"):
            await asyncio.Event().wait()

    with pytest.raises(DeadlineExceeded, match="waiting for nothing took longer than 0 s"):
        asyncio.run(scene())
    assert issubclass(DeadlineExceeded, AngariumError)


def test_what_is_in_time_passes() -> None:
    async def scene() -> int:
        async with in_time(10.0, "a moment"):
            await asyncio.sleep(0)
            return 7

    assert asyncio.run(scene()) == 7
