"""What comes in floods, told in few records: the first of a kind at once, the rest as a count.

The first is told when it happens. What is like it within a window is counted, and told at the end
of the window as one record that says how many and since when. There are at most `KINDS_MAX` kinds
at a time, and at most `KINDS_OF_A_CALLER_MAX` of one caller, so that nobody hides what others do by
asking for much; further ones are counted per caller, of whom there are at most `CALLERS_MAX`; and
the rest together. So whatever comes, a window brings at most `RECORDS_MAX` records, and the sum of
their counts is right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from angarium.security.audit.times import time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from angarium.api.audit import AuditRecord
    from angarium.ids import Micros

    Key: TypeAlias = tuple[Hashable, ...]

WINDOW_MICROS: Final = 10_000_000
"""How long things of one kind are counted before they are told."""

KINDS_MAX: Final = 256
"""Kinds that are told apart at a time."""

KINDS_OF_A_CALLER_MAX: Final = 64
"""Of those, how many may be of one caller: a name, an address and a door."""

CALLERS_MAX: Final = 64
"""Callers that are told apart when there are more kinds than that."""

RECORDS_MAX: Final = 2 * KINDS_MAX + CALLERS_MAX + 8
"""What a window brings at the most: the first of each kind, a count of each, those of callers, and
one for each event and outcome of everybody else."""

SEVERAL_RESOURCES: Final = "of several kinds, counted together"
SEVERAL_CALLERS: Final = "of several callers, counted together"


@dataclass(slots=True)
class _Tally:
    record: AuditRecord
    began: Micros
    first: Micros
    last: Micros
    count: int


class Tallies:
    """Counts what is alike, so that it need not be told one by one."""

    def __init__(
        self,
        clock: Callable[[], Micros],
        *,
        window_micros: int = WINDOW_MICROS,
        kinds_max: int = KINDS_MAX,
        callers_max: int = CALLERS_MAX,
    ) -> None:
        self._clock = clock
        self._window = window_micros
        self._kinds_max = kinds_max
        self._callers_max = callers_max
        self._kinds: dict[Key, _Tally] = {}
        self._kinds_of: Counter[Key] = Counter()
        """How many of the kinds are of a caller; nobody is in it with none."""
        self._callers: dict[Key, _Tally] = {}
        self._rest: dict[Key, _Tally] = {}
        self.coalesced = 0
        """How many were counted instead of told, ever."""

    def noted(self, key: Key, make: Callable[[], AuditRecord]) -> AuditRecord | None:
        """Note one; return the record to write now, or None if it was only counted.

        `make` is asked for a record only where there is none of this `key` yet.
        """
        now = self._clock()
        known = self._kinds.get(key)
        if known is not None:
            self._count(known, now)
            return None
        record = make()
        caller = _caller_of(record)
        is_room = len(self._kinds) < self._kinds_max
        if is_room and self._kinds_of[caller] < KINDS_OF_A_CALLER_MAX:
            self._kinds[key] = _Tally(record, now, now, now, 0)
            self._kinds_of[caller] += 1
            return record
        self._count_with_others(record, now)
        return None

    def due(self, *, is_last: bool = False) -> list[AuditRecord]:
        """Return what windows that are over have counted; `is_last`: of all of them."""
        now = self._clock()
        found = []
        for tallies in (self._kinds, self._callers, self._rest):
            for key, one in list(tallies.items()):
                if not is_last and 0 <= now - one.began < self._window:
                    continue
                if one.count:
                    found.append(_counted(one))
                    # Still under way, perhaps: the next one of it is counted, too.
                    one.began, one.count = now, 0
                else:
                    del tallies[key]
                    if tallies is self._kinds:
                        self._forget_kind_of(_caller_of(one.record))
        return found

    def _forget_kind_of(self, caller: Key) -> None:
        self._kinds_of[caller] -= 1
        if not self._kinds_of[caller]:
            del self._kinds_of[caller]

    def _count(self, tally: _Tally, now: Micros) -> None:
        if not tally.count:
            tally.first = now
        tally.count += 1
        tally.last = now
        self.coalesced += 1

    def _count_with_others(self, record: AuditRecord, now: Micros) -> None:
        of = (record.event, record.outcome)
        key: Key = (*of, *_caller_of(record))
        tallies, details = self._callers, SEVERAL_RESOURCES
        if key not in tallies and len(tallies) >= self._callers_max:
            key, tallies, details = of, self._rest, SEVERAL_CALLERS
        tally = tallies.get(key)
        if tally is None:
            is_known = tallies is self._callers
            together = msgspec.structs.replace(
                record,
                **dict.fromkeys(_TOLD_APART, ""),
                **({} if is_known else dict.fromkeys(_OF_A_CALLER, "")),
                details=details,
            )
            tally = tallies[key] = _Tally(together, now, now, now, 0)
        self._count(tally, now)


_TOLD_APART: Final = ("what", "action", "kind", "resource", "rule", "token")
_OF_A_CALLER: Final = ("who", "proof", "address", "door")


def _caller_of(record: AuditRecord) -> Key:
    return record.who, record.address, record.door


def _counted(tally: _Tally) -> AuditRecord:
    return msgspec.structs.replace(
        tally.record,
        time=time_text(tally.last),
        since=time_text(tally.first),
        count=tally.count,
    )
