"""What a call has opened is closed, whatever becomes of the call."""

from __future__ import annotations

import asyncio
import logging

import pytest

from angarium.closing import Closings


class Slow:
    """Something that takes its time to close."""

    def __init__(self) -> None:
        self.may_close = asyncio.Event()
        self.is_closed = False

    async def close(self) -> None:
        await self.may_close.wait()
        self.is_closed = True


def test_a_caller_that_is_cancelled_while_it_closes_leaves_nothing_half_closed() -> None:
    async def story() -> None:
        closings, slow = Closings(), Slow()
        calling = asyncio.create_task(closings.see_to(slow.close()))
        for _ in range(3):
            await asyncio.sleep(0)
            calling.cancel()
        await asyncio.wait((calling,))
        assert calling.cancelled()
        slow.may_close.set()
        await closings.drained()
        assert slow.is_closed

    asyncio.run(story())


def test_whoever_waits_is_told_what_went_wrong_and_else_the_log_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError("no")

    async def story() -> None:
        closings = Closings()
        with pytest.raises(OSError, match="no"):
            await closings.see_to(fail())
        calling = asyncio.create_task(closings.see_to(fail()))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait((calling,))
        await closings.drained()

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert [one.message for one in caplog.records] == [
        "what a cancelled call had opened was not closed"
    ]


def test_what_takes_too_long_is_given_up_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        closings = Closings(seconds_max=0.01)
        await closings.see_to(Slow().close())
        await closings.drained()

    asyncio.run(story())
    assert "took more than 0.01 s" in caplog.text
