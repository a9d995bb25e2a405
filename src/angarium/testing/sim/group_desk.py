"""All groups of one simulated partition, stepped only when there is something to do.

A node has an event loop and a timer for this (`service.groups.hosting`); the simulator, whose time
stands still while it decides, has a table of who was touched and whose time has come.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.delivery.effects import Effects
    from angarium.delivery.group import GroupDelivery
    from angarium.ids import Micros


class Desk:
    """The served groups by name. Whoever calls a method of one of them touches it afterwards."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupDelivery] = {}
        self._touched: dict[str, None] = {}
        """Names, in the order in which they are stepped."""
        self._wants: dict[str, None] = {}
        """Groups that could lend more if there were more."""
        self._alarms: list[tuple[int, str]] = []
        """A heap of times and names; only those that `_wake_at` confirms are meant."""
        self._wake_at: dict[str, int] = {}

    def add(self, delivery: GroupDelivery) -> None:
        """Begin to serve a group, in place of what was served under its name."""
        name = delivery.group.name
        self.groups[name] = delivery
        self._touched[name] = None

    def remove(self, name: str) -> None:
        """Serve a group no longer."""
        self.groups.pop(name, None)
        self._touched.pop(name, None)
        self._wants.pop(name, None)
        self._wake_at.pop(name, None)

    def touch(self, name: str) -> None:
        """Step a group next time: somebody said something to it, or its state has changed."""
        if name in self.groups:
            self._touched[name] = None

    def records_arrived(self) -> None:
        """Step those next time that may lend what is new."""
        self._touched.update(self._wants)

    def touch_all(self) -> None:
        """Step every group next time: the partition begins later now."""
        self._touched.update(dict.fromkeys(self.groups))

    @property
    def wake_at(self) -> int | None:
        """When the next step is due; 0: at once, None: not before something happens."""
        if self._touched:
            return 0
        while self._alarms and self._wake_at.get(self._alarms[0][1]) != self._alarms[0][0]:
            heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def step(self, now: Micros) -> Iterator[tuple[GroupDelivery, Effects]]:
        """Advance every group that has something to do; yield what follows from it."""
        alarms, wake_at = self._alarms, self._wake_at
        while alarms and alarms[0][0] <= now:
            time, name = heappop(alarms)
            if wake_at.get(name) == time:
                self._touched[name] = None
        touched, self._touched = self._touched, {}
        for name in touched:
            delivery = self.groups.get(name)
            if delivery is None:
                continue
            effects = delivery.advance(now)
            if delivery.wants_records:
                self._wants[name] = None
            else:
                self._wants.pop(name, None)
            self._set_alarm(name, effects.wake_at)
            yield delivery, effects

    def _set_alarm(self, name: str, time: int | None) -> None:
        if time is None:
            self._wake_at.pop(name, None)
        elif self._wake_at.get(name) != time:
            self._wake_at[name] = time
            heappush(self._alarms, (time, name))
