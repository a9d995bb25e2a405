"""When evening out begins by itself: after a while in which every node was there, and the same.

Pure: what is seen and the time are handed in. The service of the catalog's leader and the simulator
both decide by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.ids import Micros


class Calm:
    """Since when nothing has happened to the nodes, as one leader of the catalog saw it itself.

    No clocks of two nodes are compared. Whoever has just become the leader has seen nothing yet, so
    that a change of leader makes the wait longer, and never shorter.
    """

    def __init__(self, *, wait: float) -> None:
        """Wait for so long, in the unit of the times that are handed in."""
        self._wait = wait
        self._changed_at: Micros | None = None
        self._since = 0.0

    def forget(self) -> None:
        """Begin anew: this node does not lead the catalog."""
        self._changed_at = None

    def look(self, *, changed_at: Micros, is_anybody_away: bool, now: float) -> float:
        """Return how long it has yet to stay like this before something may begin; 0: it may.

        `changed_at` is that of the catalog's `Balance`. A node that is away may come back with all
        that it has, and copies made meanwhile would have been for nothing.
        """
        # That a run has begun for a change, so that 0 is left of it, is nothing that happened.
        is_other = self._changed_at is None or changed_at not in {0, self._changed_at}
        self._changed_at = changed_at
        if is_other or is_anybody_away:
            self._since = now
        if is_anybody_away:
            return max(self._wait, 1)
        return max(self._since + self._wait - now, 0)
