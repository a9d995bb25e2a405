"""How long synced entries stay in memory: the newest of all groups together, by bytes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.log.wal.writer import Touch


class EntryCache:
    """First in, first out, one group's part of a sync round at a time."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._bytes = 0
        self._synced: deque[Touch] = deque()

    def add(self, synced: Touch) -> None:
        """Note what has become durable."""
        log = synced.log
        # If entries were taken back since, this sync says nothing about their successors.
        # This is what keeps an unsynced entry in memory: Raft may ask for it again before its own
        # sync.
        if synced.rewinds == log.rewinds:
            log.synced_last = synced.last
            for index, *_ in synced.repairs:
                log.repaired.pop(index, None)
        if synced.cost:
            self._synced.append(synced)
            self._bytes += synced.cost

    def shrink(self) -> None:
        """Let the oldest entries go where there are too many."""
        while self._bytes > self._bytes_max:
            oldest = self._synced.popleft()
            self._bytes -= oldest.cost
            # Never beyond what is synced: an address in a round that is still being written cannot
            # be read.
            oldest.log.drop_recent(min(oldest.last, oldest.log.synced_last))
