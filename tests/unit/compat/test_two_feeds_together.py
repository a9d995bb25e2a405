"""A member of a group also gets what passes: two feeds, read as one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import run

from angarium.doors.feeds.feed import Portion
from angarium.errors import NotFound
from angarium_compat.hermes.joined_feed import JoinedFeed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Coming:
    """A feed that yields what it is given, and then waits or breaks."""

    def __init__(self, *portions: Portion, error: Exception | None = None) -> None:
        self.acknowledged: list[tuple[str, int, tuple[int, ...]]] = []
        self.closed: list[bool] = []
        self._portions = portions
        self._error = error

    async def __aiter__(self) -> AsyncIterator[Portion]:
        for one in self._portions:
            yield one
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()

    async def acknowledge(self, topic: str, partition: int, ranges: tuple[int, ...]) -> None:
        self.acknowledged.append((topic, partition, ranges))

    async def close(self, *, lost: bool = False) -> None:
        self.closed.append(lost)


def test_two_feeds_come_together_and_the_first_is_acknowledged() -> None:
    async def check() -> None:
        member, passing = Coming(Portion("t", 2, [])), Coming(Portion("t", 1, [], live=True))
        feed = JoinedFeed(member, passing)
        coming = aiter(feed)
        found = [await anext(coming), await anext(coming)]
        assert {one.live for one in found} == {True, False}
        await feed.acknowledge("t", 2, (0, 2))
        await feed.close(lost=True)
        assert (member.acknowledged, passing.acknowledged) == ([("t", 2, (0, 2))], [])
        assert (member.closed, passing.closed) == ([True], [False])
        await coming.aclose()

    run(check())


def test_what_breaks_one_of_two_feeds_ends_both() -> None:
    async def check() -> None:
        with pytest.raises(NotFound):
            async for _ in JoinedFeed(Coming(), Coming(error=NotFound("gone"))):
                pass

    run(check())
