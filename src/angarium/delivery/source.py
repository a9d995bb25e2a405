"""What delivery wants to know of a partition's records: ports, implemented over the log.

Nothing here hands over a record. Delivery works with offsets; the batches themselves are read by
whoever sends what was decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Micros

EVERYTHING_IS_DUE: Final = (1 << 63) - 1
"""As a time: no delay is honoured."""


class Stretch(NamedTuple):
    """What is known about some neighbouring offsets."""

    end: int
    """Past the last offset of the stretch; above where it begins."""
    absent: tuple[int, ...] = ()
    """Ranges (first, past the last, and so on, upward) with nothing to deliver: gaps, records that
    were compacted away, and records that have expired."""
    delayed: tuple[int, ...] = ()
    """Ranges of records that are not due yet."""
    may_expire: bool = False
    """Whether some record here expires one day; if not, nobody needs to ask again."""


class RecordSource(Protocol):
    """The committed records of one partition."""

    @property
    def start_offset(self) -> int:
        """The lowest offset that has not been trimmed away."""

    @property
    def end_offset(self) -> int:
        """The offset after the last record that may be read."""

    @property
    def lendable_end(self) -> int:
        """Behind which offset nothing new may be lent for now: the end, or a gate before it."""

    def stretch(self, start: int, *, limit: int, now: Micros, due: int) -> Stretch:
        """Look at up to `limit` offsets from `start` on, which lies in the log.

        A record has expired if its time is at or before `now`, and is delayed if its time is after
        `due`. The stretch may end early, wherever it is convenient: at the end of a batch, or of
        so many batches as are wanted in one delivery.
        """

    def key_hashes(self, start: int, end: int) -> Sequence[int]:
        """Return the key hash of each offset in `[start, end)`; 0: no key, or no record."""

    def due(
        self, after: tuple[int, int], until: int, *, floor: int, limit: int
    ) -> Sequence[tuple[int, int]]:
        """Return delayed records as (time of delivery, offset), in this order, up to `limit`.

        Those that come after `after` in that order, are due at `until` or before, and have an
        offset of at least `floor`.
        """

    def next_due(self, after: int, *, floor: int) -> int | None:
        """Return the earliest time of delivery later than `after`, of records from `floor` on."""
