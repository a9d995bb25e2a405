"""How long synced entries stay in memory: the newest of all groups together, by bytes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.log.wal.group_log import GroupLog


class Settled:
    """One group's part of a sync group. Its entries may leave memory once that is durable."""

    __slots__ = ("cost", "last", "log", "oldest", "repaired", "rewinds")

    def __init__(
        self, log: GroupLog, *, oldest: int | None, cost: int, repaired: list[int]
    ) -> None:
        self.log: Final = log
        self.oldest: Final = oldest
        """The oldest file the group then needs."""
        self.cost: Final = cost
        """How many bytes of memory its entries take."""
        self.repaired: Final = repaired
        self.last: Final = log.last
        self.rewinds: Final = log.rewinds


class EntryCache:
    """First in, first out, one sync group's part at a time."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._bytes = 0
        self._settled: deque[Settled] = deque()

    def add(self, settled: Settled) -> None:
        """Note what has become durable."""
        log = settled.log
        # Entries that were taken back since have successors of which this sync knows nothing.
        if settled.rewinds == log.rewinds:
            log.synced_last = settled.last
            for index in settled.repaired:
                log.repaired.pop(index, None)
        if settled.cost:
            self._settled.append(settled)
            self._bytes += settled.cost

    def shrink(self) -> None:
        """Let the oldest entries go where there are too many."""
        while self._bytes > self._bytes_max:
            oldest = self._settled.popleft()
            self._bytes -= oldest.cost
            oldest.log.drop_recent(min(oldest.last, oldest.log.synced_last))
