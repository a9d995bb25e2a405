"""The way upward through a partition, each record met once.

Below the sweep's position a record that is not acknowledged is either *busy* (lent, waiting for
another attempt, promised to the dead letters, ready to be lent again) or not due yet; the latter
are not remembered one by one, however many there are, but found again through the source when
their time has come. At and above the position nothing has been lent, but for what is busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.delivery.blocks import BLOCK, REST, SHIFT, Marks, blocks, lowest, pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.machine.cursors import Group

LOOK_OFFSETS: Final = 64 * BLOCK
"""How far the source is asked to look ahead at a time."""

STEPS_MAX: Final = 512
"""Blocks passed in one step of a group. If all are acknowledged or not due, the step ends there and
the next one goes on, so that a long way does not keep others waiting."""

DUE_RECORDS_MAX: Final = 4_096
"""Delayed records taken up in one step; further ones that are due follow in the next."""

SPREAD_CONTAINERS_MAX: Final = 32_768
"""Containers of acknowledged ranges above the floor at which the sweep halts until the floor has
risen: half of what the machine takes, so that whatever is on loan by then can be acknowledged."""

LAST: Final = 1 << 63


class Sweep:
    """Finds records that have not been looked at, and delayed ones whose time has come."""

    def __init__(self, group: Group, source: RecordSource, *, due: int) -> None:
        self.position = group.floor
        self.busy = Marks()
        self.absent: list[tuple[int, int]] = []
        """Blocks with records that need no delivery, to be acknowledged as they are."""
        self.is_unfinished = False
        """True if the last step ended before its time: go on soon."""
        self.may_expire = False
        """True once a record was met that expires one day: look again before lending it late."""
        self._group = group
        self._source = source
        self._plain = range(0)
        """Offsets that are known to be neither absent nor delayed, and never to expire."""
        self._due = (due, LAST)
        """Every delayed record up to here, by time and offset, is due."""
        self._next_due: int | None = None
        self._is_due_stale = True
        """True if delayed records may have been passed since `_next_due` was found out."""

    def next(self, count: int, now: Micros, *, stop: int | None = None) -> tuple[int, int] | None:
        """Return the next records, up to `count`, all of one block; None if there are none.

        Nothing at or above `stop` is looked at.
        """
        end = self._source.lendable_end
        if stop is not None and stop < end:
            end = stop
        acked, busy = self._group.acked, self.busy
        # Scattered acknowledgements cost the machine containers. Lending on would come to the
        # limit at which it refuses acknowledgements, and a group whose acknowledgements are
        # refused cannot go on.
        if acked.containers > SPREAD_CONTAINERS_MAX:
            return None
        for _ in range(STEPS_MAX):
            position = self.position
            # Acknowledged by other means, a transaction or a jump: there is nothing to look at
            # below the floor.
            if position < acked.floor:
                position = self.position = acked.floor
            if position >= end:
                return None
            block = position >> SHIFT
            until, absent, delayed = self._look(position, end, now)
            mask = ((1 << (until - position)) - 1) << (position & REST)
            free = mask & ~(acked.bits(block) | busy.bits(block))
            gone = free & absent
            free &= ~(absent | delayed)
            taken = lowest(free, count)
            if taken != free:
                until = (block << SHIFT) + taken.bit_length()
                # Absent records behind the last one taken are met again: the position stops there.
                gone &= (1 << taken.bit_length()) - 1
            self.position = until
            if gone:
                self.absent.append((block, gone))
            if taken:
                return block, taken
        self.is_unfinished = True
        return None

    def is_absent(self, block: int, bits: int, now: Micros) -> int:
        """Return which of these records have expired, or are gone, by now."""
        # The usual case, and it costs nothing: no record of this group was ever given an expiry.
        if not self.may_expire:
            return 0
        base = block << SHIFT
        start, end = base + (bits & -bits).bit_length() - 1, base + bits.bit_length()
        gone = 0
        while start < end:
            stretch = self._source.stretch(start, limit=end - start, now=now, due=self._due[0])
            gone |= _bits_in(block, stretch.absent)
            start = stretch.end
        return gone & bits

    def due(self, now: Micros) -> Iterator[int]:
        """Yield delayed records that the sweep has passed and whose time has come."""
        if now <= self._due[0]:
            return
        next_due = self.next_due
        if next_due is None or next_due > now:
            self._due = (now, LAST)
            return
        acked, busy = self._group.acked, self.busy
        found = self._source.due(self._due, now, floor=acked.floor, limit=DUE_RECORDS_MAX)
        if len(found) < DUE_RECORDS_MAX:
            self._due = (now, LAST)
            self._is_due_stale = True
        else:
            # By time and offset, so that the next step goes on behind exactly this record.
            self._due = found[-1]
            self.is_unfinished = True
        for _, offset in found:
            # Above the position the sweep itself will meet it. Planted as delay-forgotten.
            if offset < self.position and offset not in busy and offset not in acked:
                yield offset

    @property
    def next_due(self) -> int | None:
        """When the next delayed record may be due; None: there is none."""
        if self._is_due_stale:
            self._is_due_stale = False
            after, floor = self._due[0], self._group.floor
            self._next_due = self._source.next_due(after, floor=floor)
        return self._next_due

    def _look(self, position: int, end: int, now: Micros) -> tuple[int, int, int]:
        """Return where to stop looking in this block, and what is absent or delayed before."""
        block = position >> SHIFT
        until = min((block + 1) << SHIFT, end)
        if position not in self._plain:
            limit = min(LOOK_OFFSETS, end - position)
            stretch = self._source.stretch(position, limit=limit, now=now, due=self._due[0])
            if stretch.absent or stretch.delayed or stretch.may_expire:
                self.may_expire |= stretch.may_expire
                # What is passed now may be due earlier than anything known so far.
                self._is_due_stale |= bool(stretch.delayed)
                absent = _bits_in(block, stretch.absent)
                return min(until, stretch.end), absent, _bits_in(block, stretch.delayed)
            self._plain = range(position, stretch.end)
        return min(until, self._plain.stop), 0, 0


def _bits_in(block: int, flat: tuple[int, ...]) -> int:
    """Return the bits that flat ranges have in one block."""
    base = block << SHIFT
    bits = 0
    for start, end in pairs(flat):
        low, high = max(start, base), min(end, base + BLOCK)
        if low < high:
            bits |= next(blocks(low, high))[1]
    return bits
