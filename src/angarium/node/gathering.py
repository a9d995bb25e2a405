"""Publishes on their way to becoming entries: who waits for company, and for how long.

An entry costs every replica a message, a sync and an answer, whatever is in it. So publishes that
come close together share one: what comes for a partition that has an entry under way waits for the
end of this node's sync, and gathers. Where a partition has none, waiting would bring no company,
only another sync's length: it goes on its way, unless the node is pressed and wants even frames
shared.

Where many publish to a partition at a time, each waiting for its answer, more can be had. They are
answered together, and come back together if the next entry waits for them. While the node's loop
keeps up, it waits for the entries that are under way. When the loop is pressed, which makes
everybody wait anyway, it waits until nobody more comes, or enough are there: sixty callers then
share a few entries where they shared twenty. Where few publish at a time nobody waits for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import RaftGroupId
    from angarium.replica.acks import Publishing

ENTRY_BYTES: Final = 1 << 20
"""Publishes share entries up to this size, so that a follower gets to work on the first while the
rest is on its way; a larger single publish is an entry of its own. So much waits for no sync."""

WORTHWHILE_BYTES: Final = 64 << 10
"""So much is worth a round of its own, and waits for no other entry."""

CROWD: Final = 4
"""Where so many publishes of a partition have waited for their answer at a time, small ones
gather."""

PATIENCE_S: Final = 0.005
"""How long a publish waits for others, at the most, while the loop keeps up: where a majority is
far away, or gone, more entries go on their way meanwhile."""

PRESSED_PATIENCE_S: Final = 0.030
"""The same when the loop does nothing but work."""

PRESSED_GAP_S: Final = 0.002
"""When nobody came for so long, nobody more comes."""

ENOUGH: Final = 24
"""So many in an entry bear its costs easily. More would all be answered together and come back
together: callers and node would take turns where they could work at the same time."""

_CLOCK_S: Final = 0.001
"""The event loop's clock goes in such steps: patience that ends within the next one has ended."""


class _Gathered:
    """What waits in one partition."""

    __slots__ = ("is_hasty", "latest", "requests", "since", "size")

    def __init__(self, since: float) -> None:
        self.requests: list[Publishing] = []
        self.size = 0
        self.since = since
        self.latest = since
        self.is_hasty = False
        """Whether it should not even wait for a sync under way."""


class Gathering:
    """Everything accepted and not proposed yet."""

    __slots__ = (
        "_bytes_max",
        "_crowds",
        "_is_pressed",
        "_of",
        "_past_crowds",
        "_patience_s",
        "_size",
    )

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._of: dict[RaftGroupId, _Gathered] = {}
        self._size = 0
        self._patience_s = PATIENCE_S
        self._is_pressed = False
        self._crowds: dict[RaftGroupId, int] = {}
        """How many publishes of a partition were there at a time, at the most, in this period."""
        self._past_crowds: dict[RaftGroupId, int] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def patient_until(self) -> float:
        """When to look again at what waits longest; something has to wait."""
        # What came first is in front: what comes later for the same partition joins it there.
        first = next(iter(self._of.values()))
        if self._is_pressed:
            return min(first.latest + PRESSED_GAP_S, first.since + self._patience_s)
        return first.since + self._patience_s

    def next_period(self, pressed: float) -> None:
        """Begin another period, after one in which the loop was so pressed (0 to 1)."""
        self._is_pressed = pressed > 0
        self._patience_s = PATIENCE_S + pressed * (PRESSED_PATIENCE_S - PATIENCE_S)
        self._past_crowds, self._crowds = self._crowds, {}

    def add(self, group: RaftGroupId, publishing: Publishing, *, now: float) -> bool:
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
        gathered.latest = now
        gathered.size += size
        if publishing.mode is DeliveryMode.EVENTUAL or gathered.size >= ENTRY_BYTES:
            gathered.is_hasty = True
        return True

    def take(
        self, unanswered: Callable[[RaftGroupId], int], *, is_syncing: bool, now: float
    ) -> list[tuple[RaftGroupId, list[Publishing]]]:
        """Return, and let go of, the publishes that need not wait any longer, by partition.

        `unanswered` says how many publishes of a partition wait for their entry's commit.
        """
        due = [
            group
            for group, gathered in self._of.items()
            if gathered.is_hasty
            or (
                not self._is_pressed and not unanswered(group)
                if is_syncing
                else gathered.size >= WORTHWHILE_BYTES
                or now > gathered.since + self._patience_s - _CLOCK_S
                or self._has_company(group, gathered, unanswered(group), now)
            )
        ]
        taken = []
        for group in due:
            gathered = self._of.pop(group)
            self._size -= gathered.size
            taken.append((group, gathered.requests))
        return taken

    def _has_company(
        self, group: RaftGroupId, gathered: _Gathered, unanswered: int, now: float
    ) -> bool:
        """Return whether everybody is there whom it is worth waiting for."""
        there = len(gathered.requests) + unanswered
        if there > self._crowds.get(group, 0):
            self._crowds[group] = there
        if not self._is_pressed:
            return unanswered < CROWD
        crowd = max(self._crowds[group], self._past_crowds.get(group, 0))
        return (
            crowd < CROWD
            or len(gathered.requests) >= ENOUGH
            or now >= gathered.latest + PRESSED_GAP_S
        )


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
