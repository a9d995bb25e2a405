"""Which topics a subscription wants: by name, and by pattern."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.client.reading.starts import StartLike

_WILDCARDS: Final = frozenset("*?[")


class Wishes:
    """Names and patterns (`*`, `?`, `[abc]`), each with where to begin."""

    def __init__(self) -> None:
        self._starts: dict[str, StartLike] = {}
        self._begun: set[str] = set()

    @property
    def has_patterns(self) -> bool:
        """Tell whether all topics have to be looked at."""
        return any(map(is_pattern, self._starts))

    def add(self, topics: Sequence[str], start: StartLike) -> None:
        """Want these, too; one that is wanted already goes on where it is."""
        if not topics:
            raise InvalidArgument("a subscription needs at least one topic")
        for topic in topics:
            self._starts.setdefault(topic, start)

    def drop(self, topics: Sequence[str]) -> None:
        """Want these no longer."""
        for topic in topics:
            self._starts.pop(topic, None)
            self._begun.discard(topic)

    def names(self) -> list[str]:
        """Return the topics wanted by name."""
        return [topic for topic in self._starts if not is_pattern(topic)]

    def matches(self, topic: str) -> bool:
        """Tell whether a topic not wanted by name fits a pattern."""
        return topic not in self._starts and self.covers(topic)

    def covers(self, topic: str) -> bool:
        """Tell whether a topic is wanted at all."""
        return self._wish_for(topic) is not None

    def start_of(self, topic: str) -> StartLike:
        """Return where to begin with a topic just found.

        What turns up after the first look was made since then, so none of it may be missed.
        """
        wish = self._wish_for(topic)
        assert wish is not None
        return "earliest" if wish in self._begun else self._starts[wish]

    def current(self) -> set[str]:
        """Return everything wanted now, for `have_begun`."""
        return set(self._starts)

    def have_begun(self, wishes: set[str]) -> None:
        """Note that all topics of these wishes have been looked at."""
        self._begun |= wishes & self._starts.keys()

    def _wish_for(self, topic: str) -> str | None:
        if topic in self._starts:
            return topic
        return next(
            (wish for wish in self._starts if is_pattern(wish) and fnmatchcase(topic, wish)), None
        )


def is_pattern(topic: str) -> bool:
    """Tell whether `topic` stands for all topics that fit it."""
    return not _WILDCARDS.isdisjoint(topic)
