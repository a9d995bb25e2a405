"""Which member of a stream group a leader prefers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from tests.on_a_loop import SOON_S, on_a_loop

from angarium.service.groups.assigning import PAIRS_MAX, Assigning

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.machine.catalog import Topic


def topics_of(**sizes: int) -> Callable[[str], Topic | None]:
    settings = SimpleNamespace(placement="spread", homes=())
    known = {
        name: SimpleNamespace(groups=tuple(range(size)), settings=settings)
        for name, size in sizes.items()
    }
    return cast("Callable[[str], Topic | None]", known.get)


def test_topics_that_all_consume_are_shared_out_together() -> None:
    assigning = Assigning(lambda: None)
    topics = topics_of(a=1, b=1)
    members: dict[str, tuple[str, ...]] = {"x": ("a", "b"), "y": ("a", "b")}
    chosen = {assigning.preferred(members, topic, 0, topics) for topic in ("a", "b")}
    assert chosen == {"x", "y"}, "nobody has two while another has none"


def test_members_with_different_topics_share_each_by_itself() -> None:
    assigning = Assigning(lambda: None)
    topics = topics_of(a=4, b=4)
    members: dict[str, tuple[str, ...]] = {"x": ("a", "b"), "y": ("a",)}
    chosen = [assigning.preferred(members, "a", number, topics) for number in range(4)]
    assert sorted(chosen) == ["x", "x", "y", "y"]
    assert assigning.preferred({}, "a", 0, topics) == ""
    assert assigning.preferred({"x": ("gone",)}, "gone", 0, topics) == ""


@on_a_loop
async def test_a_large_assignment_is_computed_aside_and_told_when_it_is_there() -> None:
    news = asyncio.Event()
    assigning = Assigning(news.set)
    topics = topics_of(a=100)
    members: dict[str, tuple[str, ...]] = {
        f"m{number}": ("a",) for number in range(PAIRS_MAX // 100 + 1)
    }
    assert assigning.preferred(members, "a", 0, topics) == ""
    async with asyncio.timeout(SOON_S):
        await news.wait()
    assert assigning.preferred(members, "a", 0, topics) in members


def test_members_are_preferred_where_a_partition_lives() -> None:
    settings = SimpleNamespace(placement="homed", homes=("eu", "us"))
    known = {"a": SimpleNamespace(groups=tuple(range(4)), settings=settings)}
    find = cast("Callable[[str], Topic | None]", known.get)
    members: dict[str, tuple[str, ...]] = {"x": ("a",), "y": ("a",)}
    regions = {"x": "us", "y": "eu"}
    assigning = Assigning(lambda: None)
    chosen = [assigning.preferred(members, "a", n, find, regions) for n in range(4)]
    assert chosen == ["y", "x", "y", "x"]
