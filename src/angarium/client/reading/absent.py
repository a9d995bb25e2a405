"""Partitions that a subscription leaves out for now, because they have no leader.

A topic can lose some of its partitions: those at home in a region that is lost. The others are read
on. What is missing is reported once and shows in `Subscription.waiting_for`. It is read as soon as
it has a leader again: from where it was, or from when the subscription began without it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from angarium.api import Start, StartAt
from angarium.errors import NotLeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from angarium.api import TopicInfo
    from angarium.client.reading.cursor import Cursor
    from angarium.client.waiting import Waiting
    from angarium.errors import AngariumError
    from angarium.ids import Offset

LOOK_UP_S: Final = 1.0
"""How long the start of a partition is looked up before the others are read without it. Doubles
with each failure: a node may only be slow."""

RECHECK_S: Final = 1.0
"""How often it is asked whether a partition that is waited for has a leader again."""

RETRY_S: Final = 5.0
"""A partition that is waited for is tried this often although no leader is known: a node may not
know of it, or have a copy that can be read."""

NAMED_MAX: Final = 5
"""Partitions that one report names; of further ones it says how many there are."""


class Absent:
    """The partitions that one subscription cannot read at the moment."""

    def __init__(
        self,
        waiting: Waiting,
        *,
        patience_s: float,
        clock: Callable[[], float],
        wall: Callable[[], float] = time.time,
    ) -> None:
        """After `patience_s` without success a partition is waited for, whatever the reason."""
        self._waiting = waiting
        self._patience_s = patience_s
        self._clock = clock
        self._wall = wall
        self._since: dict[Cursor, float] = {}
        """The partitions that could not be read when that was tried last, and since when."""
        self._links: dict[Cursor, tuple[object, int]] = {}
        """By which stream, and which number on it, those were read at the last look."""
        self._told: set[Cursor] = set()

    def time_for(self, cursor: Cursor) -> float:
        """Return how many seconds an attempt to find the start of a partition may take."""
        longest_s = LOOK_UP_S * 2.0 ** min(cursor.failures, 6)
        left_s = self._patience_s - (self._clock() - self._since.get(cursor, self._clock()))
        return min(longest_s, self._patience_s, max(left_s, LOOK_UP_S))

    def refused(self, cursor: Cursor, error: AngariumError, *, after_s: float = 0.0) -> None:
        """Note why a partition cannot be read; finding that out took `after_s`."""
        cursor.hindrance = error
        cursor.failures += 1
        self._since.setdefault(cursor, self._clock() - after_s)
        if cursor.is_waited_for:
            cursor.retry_at = self._clock() + RETRY_S

    def look(self, cursors: Iterable[Cursor], infos: Mapping[str, TopicInfo]) -> None:
        """Decide again which partitions are waited for, by the cluster's description of topics."""
        known = set(cursors)
        self._since = {one: since for one, since in self._since.items() if one in known}
        self._links = {one: link for one, link in self._links.items() if one in known}
        self._told &= known
        now = self._clock()
        for cursor, since in list(self._since.items()):
            info = infos.get(cursor.topic)
            partitions = () if info is None else info.partitions
            partition = partitions[cursor.partition] if cursor.partition < len(partitions) else None
            is_led = partition is not None and partition.leader is not None
            trouble = "" if partition is None else partition.trouble
            if trouble:
                # The cluster's reason says more than the timeout of an attempt.
                cursor.hindrance = NotLeader(trouble)
            is_lasting = bool(trouble) or now - since >= self._patience_s
            if cursor.link is not None:
                # A stream is opened before its node says that it cannot serve a partition.
                link = (cursor.link, cursor.number)
                if is_led or self._links.get(cursor) == link:
                    self._found(cursor)
                else:
                    self._links[cursor] = link
                    if is_lasting and cursor.failures > 1:
                        self._wait_for(cursor)
            elif is_led and cursor.is_waited_for:
                cursor.retry_at = min(cursor.retry_at, now + RECHECK_S)
            elif is_lasting:
                self._wait_for(cursor)
        if known - self._since.keys():
            self._tell()
            return
        for cursor, since in self._since.items():
            if cursor.hindrance is not None:
                self._waiting.because(cursor.hindrance, since=since, now=now)

    @property
    def is_empty(self) -> bool:
        """Return whether everything could be read when that was tried last."""
        return not self._since

    def among(self, cursors: Iterable[Cursor]) -> dict[Cursor, AngariumError]:
        """Return which of these cannot be read, and why."""
        return {
            one: one.hindrance
            for one in cursors
            if one.link is None and one.hindrance is not None and one in self._since
        }

    def _found(self, cursor: Cursor) -> None:
        del self._since[cursor]
        self._links.pop(cursor, None)
        self._told.discard(cursor)
        cursor.hindrance, cursor.failures, cursor.retry_at = None, 0, 0.0
        cursor.is_waited_for = False

    def _wait_for(self, cursor: Cursor) -> None:
        if cursor.is_waited_for:
            return
        cursor.is_waited_for = True
        cursor.retry_at = self._clock() + RECHECK_S
        if cursor.next_offset is None and cursor.start.at is StartAt.LATEST:
            # What is published after now has to be delivered. When the partition has a leader
            # again its end may lie behind that.
            cursor.start = Start(StartAt.TIMESTAMP, int(self._wall() * 1_000_000))

    def _tell(self) -> None:
        """Say once what the subscription goes on without."""
        new = [one for one in self._since if one.is_waited_for and one not in self._told]
        if not new:
            return
        self._told |= set(new)
        names = [f"{one.topic}[{one.partition}]" for one in new]
        more = len(names) - NAMED_MAX
        named = ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        self._waiting.tell(
            NotLeader(f"{named} cannot be read yet, and will be once led: {new[0].hindrance}")
        )


def start_of_copy(cursor: Cursor, info: TopicInfo | None) -> Offset | None:
    """Return where to begin in the nearest copy of a partition that has lost its home.

    Only a leader knows its end. Until there is one, the end of the copy is used, as in streams
    over HTTP; records that the leader has beyond it are delivered later. None without such a
    copy, and for a partition that neither has a home nor is read elsewhere.
    """
    if info is None or cursor.partition >= len(info.partitions):
        return None
    partition = info.partitions[cursor.partition]
    if not partition.trouble or not (partition.home or partition.readers):
        return None
    ends = {StartAt.EARLIEST: partition.start_offset, StartAt.LATEST: partition.end_offset}
    return ends.get(cursor.start.at)
