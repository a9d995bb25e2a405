"""How stale what a replica shows may be, at most: what any replica may say of itself.

A follower that merely counts from the last word of its leader says too little: the word was under
way for a while, and its leader may have been replaced without knowing it. So whoever wants to know
asks the leader where the log ends, and the leader makes sure first that it still leads (a
read-index read). Whatever was committed when the question *left* lies before the end that comes
back. A replica that has everything up to that end is therefore no staler than the question is old,
whatever clocks say and however long the way was.

Pure: times are the caller's, of a clock that nobody sets, in µs.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

MARKS_MAX: Final = 16
"""Answers remembered until the replica has what they speak of; beyond, the oldest is forgotten."""


class _Mark(NamedTuple):
    asked: int
    end: int


class Freshness:
    """What one replica knows of how far its leader was, and when."""

    __slots__ = ("_marks", "_reached")

    def __init__(self) -> None:
        self._marks: deque[_Mark] = deque(maxlen=MARKS_MAX)
        self._reached: int | None = None
        """When the newest question was asked whose answer this replica has come up to."""

    def note(self, *, asked: int, end: int) -> None:
        """Hear that a leader's log ended at `end`, in answer to a question asked at `asked`."""
        self._marks.append(_Mark(asked, end))

    def staleness(self, *, now: int, end: int) -> int | None:
        """Return how old (µs) what is shown may be, up to the own `end`; None: nobody knows."""
        for mark in tuple(self._marks):
            if mark.end <= end:
                self._reached = max(mark.asked, self._reached or mark.asked)
                self._marks.remove(mark)
        return None if self._reached is None else max(now - self._reached, 0)
