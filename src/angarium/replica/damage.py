"""What became of damage: counted, and told as it happens."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import RaftGroupId


class Fate(Enum):
    """How it goes with damage."""

    FOUND = "found"
    """It is known, is not served, and is to be mended."""
    MENDED = "mended"
    """A peer's copy is in its place."""
    CONTRADICTED = "contradicted"
    """A replica here and another one have committed entries that cannot both be true: one of their
    disks went back in time."""
    LOST = "lost"
    """The replica cannot go on as itself: it begins anew, from its peers."""


class DamageBook:
    """Counts what happens to the replicas of a host."""

    __slots__ = ("counts", "on_news")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Fate, 0)
        self.on_news: Callable[[Fate, RaftGroupId, str], None] = _ignore
        """Told of everything, in words."""

    def note(self, fate: Fate, group: RaftGroupId, what: str) -> None:
        """Count something that happened."""
        self.counts[fate] += 1
        self.on_news(fate, group, what)


def _ignore(_: Fate, __: RaftGroupId, ___: str) -> None:
    """Nobody wants to know."""
