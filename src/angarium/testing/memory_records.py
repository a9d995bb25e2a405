"""The records of a partition as delivery sees them, in memory: for tests and the simulator.

Implements `angarium.delivery.source.RecordSource` by looking at every record, so slowly and surely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from angarium.delivery import Stretch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Micros

NEVER = (1 << 63) - 1


class Slot(NamedTuple):
    """One offset."""

    is_there: bool = True
    """False for a gap."""
    key: int = 0
    expires_at: int = NEVER
    deliver_at: int = 0


class MemoryRecords:
    """A partition's records; `add` appends, `trim` removes."""

    def __init__(self) -> None:
        self.start_offset = 0
        self._slots: list[Slot] = []

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return len(self._slots)

    def __getitem__(self, offset: int) -> Slot:
        return self._slots[offset]

    def add(self, *slots: Slot) -> None:
        """Append records."""
        self._slots += slots

    def trim(self, start: int) -> None:
        """Let the partition begin later."""
        self.start_offset = max(self.start_offset, start)

    @property
    def lendable_end(self) -> int:
        """The same: nothing is in the way."""
        return self.end_offset

    def stretch(self, start: int, *, limit: int, now: Micros, due: int) -> Stretch:
        """Look at every record, one by one."""
        assert self.start_offset <= start < self.end_offset, "asked for what is not there"
        end = min(start + limit, self.end_offset)
        absent: list[int] = []
        delayed: list[int] = []
        may_expire = False
        for offset in range(start, end):
            slot = self._slots[offset]
            may_expire |= slot.expires_at != NEVER
            if not slot.is_there or slot.expires_at <= now:
                _extend(absent, offset)
            elif slot.deliver_at > due:
                _extend(delayed, offset)
        return Stretch(end, tuple(absent), tuple(delayed), may_expire)

    def key_hashes(self, start: int, end: int) -> Sequence[int]:
        """Return the keys."""
        return [slot.key for slot in self._slots[start:end]]

    def due(
        self, after: tuple[int, int], until: int, *, floor: int, limit: int
    ) -> Sequence[tuple[int, int]]:
        """Return delayed records in order of time."""
        found = sorted(
            (slot.deliver_at, offset)
            for offset, slot in enumerate(self._slots)
            if slot.deliver_at and offset >= floor and offset >= self.start_offset
        )
        return [one for one in found if after < one and one[0] <= until][:limit]

    def next_due(self, after: int, *, floor: int) -> int | None:
        """Return the next time at which a record is due."""
        times = [
            slot.deliver_at
            for slot in self._slots[max(floor, self.start_offset) :]
            if slot.deliver_at > after
        ]
        return min(times, default=None)


def _extend(flat: list[int], offset: int) -> None:
    """Add one offset to flat ranges."""
    if flat and flat[-1] == offset:
        flat[-1] += 1
    else:
        flat += (offset, offset + 1)
