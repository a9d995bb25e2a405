"""One delivery on loan: what of it the user has not spoken about yet.

Two threads touch a loan: the user's, which settles records, and the one that keeps the connection.
The user's side only takes offsets out of a set and puts them on a list, each of which is one step
that no other thread can see half done; so a settled record costs a fraction of a microsecond, and
nobody waits for a lock.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from angarium.client.groups.spans import Spans, offsets_in, spans_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.client.groups.lent_partition import LentPartition

KEPT_SHARE: Final = 2 / 3
"""Of a lease that the user made longer: after this share of it, renewing is our business again."""


_opening: Final = threading.Lock()
"""Two threads that are the first to speak about a delivery make its set once."""


class Loan:
    """Records of one partition that were handed over together, under one lease."""

    __slots__ = (
        "acked",
        "attempt",
        "generation",
        "is_noted",
        "keep_until",
        "left",
        "longer",
        "lost",
        "partition",
        "ranges",
        "renew_at",
        "serial",
    )

    def __init__(
        self,
        partition: LentPartition,
        serial: int,
        *,
        ranges: Spans,
        attempt: int,
        generation: int,
        renew_at: float,
        keep_until: float,
    ) -> None:
        self.partition = partition
        self.serial = serial
        self.ranges = ranges
        """What was handed over; gaps between records may be in it."""
        self.attempt = attempt
        self.generation = generation
        self.left: set[int] | None = None
        """What the user has not spoken about. None: none of it; most batches are settled whole,
        and then no set is ever made."""
        self.acked: list[int] = []
        """Acknowledged by the user, and not yet sent. Others append; only the keeper takes out,
        and only from the front what it has seen, so that nothing is lost between the two."""
        self.is_noted = False
        """Whether the partition knows that there is something to send."""
        self.longer: dict[int, float] = {}
        """Records that the user asked to keep for longer, and until when nothing need be done."""
        self.renew_at = renew_at
        self.keep_until = keep_until
        """When renewing ends: a handler that hangs does not hold its records for ever."""
        self.lost: set[int] = set()
        """Records whose lease has ended all the same; nothing renews it."""

    # --- the user's side ------------------------------------------------------------------------

    def open(self, offsets: Iterable[int]) -> set[int]:
        """Return the set of what is left, made from the offsets of the records on first use.

        Offsets of the ranges that no record has (a compacted topic) are settled at once: nobody
        will ever hold such a record in hand and speak about it.
        """
        left = self.left
        if left is None:
            with _opening:
                if self.left is not None:
                    return self.left  # another thread was faster
                left = set(offsets)
                gaps = set(offsets_in(self.ranges)) - left
                self.left = left  # from here on others take out of it
            if gaps:
                self._send(gaps)
        return left

    def ack(self, offset: int) -> None:
        """Acknowledge a record; one that is settled already stays as it is."""
        left = self.left
        try:
            if left is None:
                left = self.open(offsets_in(self.ranges))
            left.remove(offset)
        except KeyError:
            return
        self.acked.append(offset)
        if not self.is_noted:
            self.is_noted = True
            self.partition.note(self)

    def take_out(self, offsets: Iterable[int] | None) -> Spans:
        """Take records out of what is left, all if None, and return those that were in it."""
        if self.left is None and offsets is None:
            with _opening:
                if self.left is None:
                    self.left = set()
                    return self.ranges
        left = self.open(offsets_in(self.ranges))
        taken = list(left) if offsets is None else [one for one in set(offsets) if one in left]
        left.difference_update(taken)
        return spans_of(taken)

    def withdraw_from(self, offset: int) -> None:
        """Forget what is left from an offset on: the broker has taken it back, to send it anew."""
        if self.left is None and self.ranges[-1] <= offset:
            return
        left = self.open(offsets_in(self.ranges))
        left.difference_update([one for one in list(left) if one >= offset])

    def keep_longer(self, offsets: Iterable[int], seconds: float) -> Spans:
        """Leave records alone that the user wants to keep for longer; return those still left."""
        left = self.open(offsets_in(self.ranges))
        kept = [one for one in offsets if one in left]
        # Renewing it now would make its lease shorter; it is looked at again before it ends.
        until = self.partition.now() + seconds * KEPT_SHARE
        self.longer = self.longer | dict.fromkeys(kept, until)
        return spans_of(kept)

    # --- the keeper's side ------------------------------------------------------------------------

    def take_acked(self, count_max: int) -> list[int]:
        """Return what is acknowledged and not yet sent, up to so many."""
        taken = self.acked[:count_max]
        del self.acked[: len(taken)]
        return taken

    def remaining(self) -> Spans:
        """Return what the user has not spoken about."""
        return self.ranges if self.left is None else spans_of(self.left)

    def renewable(self, now: float) -> Spans:
        """Return the same, without what need not, or cannot, be renewed now."""
        if not self.longer and not self.lost:
            return self.remaining()
        self.longer = {offset: end for offset, end in self.longer.items() if end > now}
        return spans_of(set(offsets_in(self.remaining())) - self.longer.keys() - self.lost)

    @property
    def is_over(self) -> bool:
        """Whether the user has spoken about all of it, and all that was said has been sent."""
        return self.left is not None and not self.left and not self.acked

    def _send(self, offsets: Iterable[int]) -> None:
        self.acked.extend(offsets)
        if not self.is_noted:
            self.is_noted = True
            self.partition.note(self)
