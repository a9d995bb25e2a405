"""Publishes on their way to becoming entries: who waits for company, and for how long.

An entry costs every replica a message, a sync and an answer, whatever is in it. So publishes that
come close together share one: what comes while this node syncs waits for its end, and gathers. In
a partition where many wait for their answers already it waits for those, too: they are answered
together then, come back together, and share the next entry but one. Where few publish at a time
nobody waits for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import GroupId
    from angarium.replica.acks import Publishing

ENTRY_BYTES: Final = 1 << 20
"""Publishes share entries up to this size, so that a follower gets to work on the first while the
rest is on its way; a larger single publish is an entry of its own. So much waits for no sync."""

WORTHWHILE_BYTES: Final = 64 << 10
"""So much is worth a round of its own, and waits for no other entry."""

CROWD: Final = 4
"""While so many publishes of a partition wait for their answer, further small ones gather."""

PATIENCE_S: Final = 0.005
"""How long a publish waits for that, at the most: where a majority is far away, or gone, more
entries go on their way meanwhile."""

_CLOCK_S: Final = 0.001
"""The event loop's clock goes in such steps: patience that ends within the next one has ended."""


class _Gathered:
    """What waits in one partition."""

    __slots__ = ("is_hasty", "requests", "since", "size")

    def __init__(self, since: float) -> None:
        self.requests: list[Publishing] = []
        self.size = 0
        self.since = since
        self.is_hasty = False
        """Whether it should not even wait for a sync under way."""


class Gathering:
    """Everything accepted and not proposed yet."""

    __slots__ = ("_bytes_max", "_of", "_size")

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._of: dict[GroupId, _Gathered] = {}
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def patient_until(self) -> float:
        """When the patience of whoever waits longest ends; there has to be somebody."""
        # Those who came first are in front, for nobody comes back to the place they had.
        return next(iter(self._of.values())).since + PATIENCE_S

    def add(self, group: GroupId, publishing: Publishing, *, now: float) -> bool:
        """Let a publish wait for its turn, from `now` (s) on; False if too much waits already."""
        batches = publishing.batches
        size = len(batches[0]) if len(batches) == 1 else sum(map(len, batches))
        if self._size + size > self._bytes_max:
            return False
        self._size += size
        gathered = self._of.get(group)
        if gathered is None:
            gathered = self._of[group] = _Gathered(now)
        gathered.requests.append(publishing)
        gathered.size += size
        if publishing.mode is DeliveryMode.EVENTUAL or gathered.size >= ENTRY_BYTES:
            gathered.is_hasty = True
        return True

    def take(
        self, unanswered: Callable[[GroupId], int], *, is_syncing: bool, now: float
    ) -> list[tuple[GroupId, list[Publishing]]]:
        """Return, and let go of, the publishes that need not wait any longer, by partition.

        `unanswered` says how many publishes of a partition wait for their entry's commit.
        """
        due = [
            group
            for group, gathered in self._of.items()
            if gathered.is_hasty
            or (
                not is_syncing
                and (
                    gathered.size >= WORTHWHILE_BYTES
                    or now > gathered.since + PATIENCE_S - _CLOCK_S
                    or unanswered(group) < CROWD
                )
            )
        ]
        taken = []
        for group in due:
            gathered = self._of.pop(group)
            self._size -= gathered.size
            taken.append((group, gathered.requests))
        return taken


def shared_entries(requests: list[Publishing]) -> list[list[Publishing]]:
    """Return publishes to one partition, in order, in groups that make an entry each."""
    entries: list[list[Publishing]] = []
    room = 0
    for request in requests:
        size = sum(map(len, request.batches))
        if size > room or not entries:
            entries.append([])
            room = ENTRY_BYTES
        entries[-1].append(request)
        room -= size
    return entries
