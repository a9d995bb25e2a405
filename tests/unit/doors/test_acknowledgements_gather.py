"""Acknowledgements that come one by one are told together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from tests.on_a_loop import eventually, run

from angarium.api import Settled
from angarium.doors.feeds.acknowledging import WAITING_MAX, Acknowledgements
from angarium.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Consumption, Settlement


class SlowGroup:
    """A consumption whose settlements are committed when it is told to."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[int, ...]]] = []
        self.commit = asyncio.Event()
        self.trouble: Exception | None = None

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        self.calls.append([one.ranges for one in settlements])
        await self.commit.wait()
        if self.trouble is not None:
            raise self.trouble
        return tuple(Settled(1) for _ in settlements)


def acknowledgements(group: SlowGroup) -> Acknowledgements:
    return Acknowledgements(cast("Consumption", group))


def test_what_is_said_while_some_are_under_way_goes_together() -> None:
    async def story() -> None:
        group = SlowGroup()
        said = acknowledgements(group)
        await said.say("t", 0, (0, 1))
        await eventually(lambda: group.calls)
        for offset in range(1, 100):
            await said.say("t", 0, (offset, offset + 1))
        group.commit.set()
        await said.told()
        # Each for itself: one that is refused spoils none of the others.
        assert group.calls == [[(0, 1)], [(offset, offset + 1) for offset in range(1, 100)]]

    run(story())


def test_whoever_says_too_much_waits() -> None:
    async def story() -> None:
        group = SlowGroup()
        said = acknowledgements(group)
        await said.say("t", 0, (0, 1))
        await eventually(lambda: group.calls)
        for offset in range(1, WAITING_MAX):
            await said.say("t", 0, (offset, offset + 1))
        last = asyncio.create_task(said.say("t", 0, (WAITING_MAX, WAITING_MAX + 1)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not last.done()
        group.commit.set()
        await last
        assert sum(map(len, group.calls)) == WAITING_MAX + 1

    run(story())


def test_what_could_not_be_told_is_raised_to_the_next_who_says_something() -> None:
    async def story() -> None:
        group = SlowGroup()
        group.trouble = NotFound("the topic was deleted")
        group.commit.set()
        said = acknowledgements(group)
        await said.say("t", 0, (0, 1))
        await said.told()
        with pytest.raises(NotFound):
            await said.say("t", 0, (1, 2))

    run(story())
