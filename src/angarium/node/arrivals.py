"""When the records of a partition came, as one replica has seen it by a clock that nobody sets.

An append time may lie too far back: its leader had a wrong clock, and had not yet compared
it with enough others. Such a record looks old, and would be trimmed at once. So a replica notes
now and then how far its partition reaches, and what it saw coming lately is not old, whatever its
append time says. What came before the process began is judged by its append time alone, and so is
what a replica that began with nothing is brought from the others. One that was away for a while
takes for young what came meanwhile: it is trimmed later than it could be, by as long as that.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.ids import Offset

NOTES_PER_AGE: Final = 64
"""The precision of arrival times: within 1/this of the age that is asked for."""


class Arrivals:
    """Notes of one partition: how far it reached, and when. All times are in µs."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, Offset]] = deque()
        self._is_new = False

    def note(self, end: Offset, *, is_full: bool, steady: int, age: int) -> None:
        """Note that the replica reaches to `end` now; keep what was noted within `age`."""
        notes = self._notes
        self._is_new = not (is_full or notes) and (end == 0 or self._is_new)
        if self._is_new:
            return  # what comes to it now is old
        if not notes or steady - notes[-1][0] >= age // NOTES_PER_AGE:
            notes.append((steady, end))
        while notes[0][0] < steady - age and len(notes) > 1:
            notes.popleft()

    def young_from(self, *, steady: int, age: int) -> Offset | None:
        """Return the offset from which on all records came less than `age` ago; None if unknown."""
        return next((end for at, end in self._notes if at >= steady - age), None)
