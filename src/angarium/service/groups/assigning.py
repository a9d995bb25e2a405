"""Who should have which partition of a stream group, remembered and computed off the loop if large.

All groups with the same members and topics share an answer. A large one takes a while; it is
computed in a thread, and until it is there nobody is preferred: who has a partition keeps it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.delivery import assignment
from angarium.machine.catalog.regions import HOMED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.machine.catalog import Topic

PAIRS_MAX: Final = 2_000
"""Members times partitions that are assigned on the event loop: some milliseconds. Above it a
thread does it."""

REMEMBERED: Final = 256
"""Assignments that are remembered; then the one that was not asked for the longest goes."""

Key: TypeAlias = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, int, tuple[str, ...]], ...]]
"""Members and their regions; topics, how many partitions each has, and where those live in turn."""


class Assigning:
    """Answers who should have a partition."""

    def __init__(self, on_news: Callable[[], None]) -> None:
        """Tell `on_news` when an assignment that was asked for in vain is there."""
        self._on_news = on_news
        self._known: OrderedDict[Key, dict[tuple[str, int], str]] = OrderedDict()
        self._computing: dict[Key, asyncio.Task[None]] = {}

    def preferred(
        self,
        members: dict[str, tuple[str, ...]],
        topic: str,
        number: int,
        find: Callable[[str], Topic | None],
        regions: Mapping[str, str] | None = None,
    ) -> str:
        """Return who of the members, with the topics each consumes, should have a partition.

        `find` knows topics by name. Where all consume the same topics these are shared out
        together; else each by itself. `regions` says where members are: they get partitions that
        live there, as far as that is fair. Empty: nobody, or it is not known yet.
        """
        if not members:
            return ""
        scopes = set(members.values())
        names = scopes.pop() if len(scopes) == 1 else (topic,)
        sizes = tuple(
            (name, len(known.groups), _homes(known))
            for name in sorted({*names, topic})
            if (known := find(name)) is not None
        )
        # Where nothing has a home it does not matter where anybody is.
        where = (regions or {}) if any(homes for _, _, homes in sizes) else {}
        named = tuple((member, where.get(member, "")) for member in sorted(members))
        return self._assigned((named, sizes)).get((topic, number), "")

    def _assigned(self, key: Key) -> dict[tuple[str, int], str]:
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        members, sizes = key
        if len(members) * sum(size for _, size, _ in sizes) <= PAIRS_MAX:
            found = _compute(key)
            self._remember(key, found)
            return found
        if key not in self._computing:
            self._computing[key] = asyncio.create_task(self._compute_aside(key))
        return {}

    async def _compute_aside(self, key: Key) -> None:
        try:
            self._remember(key, await asyncio.to_thread(_compute, key))
        finally:
            del self._computing[key]
        self._on_news()

    def _remember(self, key: Key, found: dict[tuple[str, int], str]) -> None:
        self._known[key] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _compute(key: Key) -> dict[tuple[str, int], str]:
    members, sizes = key
    partitions = [(topic, number) for topic, size, _ in sizes for number in range(size)]
    homes = {
        (topic, number): lives[number % len(lives)]
        for topic, size, lives in sizes
        if lives
        for number in range(size)
    }
    regions = dict(members)
    return assignment(regions, partitions, regions=regions, homes=homes)


def _homes(topic: Topic) -> tuple[str, ...]:
    """Return where the partitions of a topic live, in turn; nothing of one that is spread."""
    settings = topic.settings
    return tuple(settings.homes) if settings.placement == HOMED else ()
