"""How long synced entries stay in memory: the newest of all groups together, by bytes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.log.wal.group_log import GroupLog


class CacheUnit:
    """Entries of one group that one sync group made durable; they leave memory together."""

    __slots__ = ("cost", "last", "log", "repaired", "rewinds")

    def __init__(self, log: GroupLog, cost: int, repaired: list[int]) -> None:
        self.log: Final = log
        self.cost: Final = cost
        self.repaired: Final = repaired
        self.last: Final = log.last
        self.rewinds: Final = log.rewinds


class EntryCache:
    """First in, first out, one unit at a time."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._bytes = 0
        self._units: deque[CacheUnit] = deque()

    def publish(self, units: Iterable[CacheUnit]) -> None:
        """Note what has become durable, and let the oldest go where there is too much."""
        for unit in units:
            log = unit.log
            # Entries that were taken back since have successors of which this sync knows nothing.
            if unit.rewinds == log.rewinds:
                log.synced_last = unit.last
                for index in unit.repaired:
                    log.repaired.pop(index, None)
            self._units.append(unit)
            self._bytes += unit.cost
        while self._bytes > self._bytes_max:
            oldest = self._units.popleft()
            self._bytes -= oldest.cost
            oldest.log.drop_recent(min(oldest.last, oldest.log.synced_last))
