"""The groups of one partition, while this node leads it.

Groups step when something happened to them, many in one turn of the loop, but never for so long
that the node's other business waits. A group that nobody takes part in has no object here: it is
made when the first member comes, from what the machine knows.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.delivery.retry_times import RetryTimes
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    NotFound,
    NotLeader,
    rebuilt,
)
from angarium.ids import node_of
from angarium.lending.changes import ChangeQueue
from angarium.lending.configs import settings_of
from angarium.lending.led_group import LedGroup
from angarium.lending.log_records import LogRecords
from angarium.machine.changes import Open
from angarium.machine.outcomes import Refused
from angarium.replica.starts import offset_of

if TYPE_CHECKING:
    from angarium.api import Start
    from angarium.ids import Offset, RaftGroupId
    from angarium.lending.changes import Fate
    from angarium.lending.host import GroupHost
    from angarium.lending.ports import Opening, Wanted
    from angarium.lending.seat import LedSeat
    from angarium.machine.changes import Change
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome
    from angarium.replica.partition_replica import PartitionReplica

_log = logging.getLogger(__name__)

SLICE_S: Final = 0.005
"""How long the groups of a partition step before others get their turn."""


class LedPartition:
    """What its groups share: a queue of changes, the records, and turns to step."""

    def __init__(self, host: GroupHost, replica: PartitionReplica, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self.replica = replica
        self.groups: dict[str, LedGroup] = {}
        self.changes = ChangeQueue(host.around, replica)
        self.records = LogRecords(replica.partition, lambda: host.around.lifetime(topic))
        self.is_over = False
        self._term = replica.raft.term
        self.host = host
        self.around = host.around
        self._opening: dict[str, list[tuple[LedSeat, Wanted]]] = {}
        """Members that wait for their group to be opened."""
        self._stirred: dict[LedGroup, None] = {}
        self._is_called = False
        self._hungry: dict[LedGroup, None] = {}
        """Those to which new records are news, in an order that a seed repeats."""
        self._ending: dict[str, list[tuple[LedSeat, Wanted]]] = {}
        """Groups that were given up while changes of theirs are under way, each with the members
        that wait for these: the group begins anew from a state that has them applied."""
        self._retry_times: dict[str, RetryTimes] = {}
        """Kept while this node leads: a group without members is let go of, and made anew."""
        self._start = replica.partition.log.start_offset
        for group in self._known.values():
            if group.attempts:
                # Retries wait from now on, not from when the first member comes.
                self.retry_times(group).look(self.around.now())
        self.owe_letters()

    @property
    def raft_group(self) -> RaftGroupId:
        """The Raft group."""
        return self.replica.group

    @property
    def members_max(self) -> int:
        """How many members a group may have here."""
        return self.replica.partition.machine.limits.members_max

    @property
    def is_current(self) -> bool:
        """Whether this node leads, and has led without a break since this was made."""
        replica = self.replica
        return not self.is_over and replica.may_serve and replica.raft.term == self._term

    @property
    def _known(self) -> dict[str, Group]:
        return self.replica.partition.machine.groups.by_name

    # --- members ------------------------------------------------------------------------------

    def join(self, seat: LedSeat, wanted: Wanted) -> None:
        """Let a member take part in a group, which is opened on first use."""
        name = seat.membership.group
        if wanted.opening.kind.keeps_own_offsets:
            seat.drop(InvalidArgument("a checkpoint group keeps its own offsets; nothing is lent"))
            return
        if name in self._ending:
            self._ending[name].append((seat, wanted))
            return
        group = self._known.get(name)
        if group is not None and name not in self._opening:
            self._join(group, seat, wanted)
            return
        if not wanted.may_open and name not in self._opening:
            seat.drop(NotLeader(f"the group {name} is not open in {self.topic} {self.number} yet"))
            return
        waiting = self._opening.setdefault(name, [])
        waiting.append((seat, wanted))
        if len(waiting) == 1:
            self.open(name, wanted.opening, lambda outcome: self._opened(name, outcome))

    def open(self, name: str, opening: Opening, fate: Fate) -> None:
        """Make a group in this partition, unless it is there."""
        try:
            change = Open(
                name, opening.kind, self.offset_of(opening.start), settings_of(opening.config)
            )
        except AngariumError as error:
            fate(error)
            return
        self.changes.submit(change, fate)

    def offset_of(self, start: Start) -> Offset:
        """Return where `start` lies; an offset outside of the log is the nearest inside."""
        log = self.replica.partition.log
        return max(log.start_offset, min(offset_of(log, start), log.end_offset))

    def _opened(self, name: str, outcome: Outcome | AngariumError) -> None:
        waiting = self._opening.pop(name, [])
        if isinstance(outcome, Refused):
            outcome = rebuilt(outcome.code, outcome.message) or AngariumError(outcome.message)
        group = self._known.get(name)
        for seat, wanted in waiting:
            if isinstance(outcome, AngariumError):
                seat.drop(outcome)
            elif group is None or self.is_over:
                seat.drop(NotLeader("the group was opened and lost again; attach again"))
            elif not seat.is_gone:
                self._join(group, seat, wanted)

    def _join(self, group: Group, seat: LedSeat, wanted: Wanted) -> None:
        if wanted.opening.kind is not group.kind:
            kind = group.kind.name.lower()
            seat.drop(AlreadyExists(f"the group {group.name} is of the kind {kind}"))
        else:
            try:
                led = self._led(group)
            except AngariumError as error:
                seat.drop(_unreadable(error))
            else:
                led.join(seat, wanted)

    def owe_letters(self) -> None:
        """Lead groups that have dead letters to store, if their records can be read."""
        for group in self._known.values():
            if group.intents and group.name not in self.groups and group.name not in self._ending:
                with suppress(AngariumError):
                    self.stir(self._led(group))

    def retry_times(self, group: Group) -> RetryTimes:
        """Return when this leader lets a group's failed records be tried again."""
        known = self._retry_times.get(group.name)
        if known is None or known.group is not group:
            known = self._retry_times[group.name] = RetryTimes(group)
        return known

    def _led(self, group: Group) -> LedGroup:
        led = self.groups.get(group.name)
        if led is not None and led.group is not group:
            self.drop(led, NotFound(f"the group {group.name} was deleted"))
            led = None
        if led is None:
            led = self.groups[group.name] = LedGroup(self, group)
        return led

    # --- changes --------------------------------------------------------------------------------

    def change(self, change: Change, fate: Fate) -> None:
        """Have a group changed by somebody who looks after it, and let it follow."""

        def then(outcome: Outcome | AngariumError) -> None:
            led = self.groups.get(change.group)
            if led is not None:
                if self._known.get(change.group) is not led.group:
                    self.drop(led, NotFound(f"the group {change.group} was deleted"))
                else:
                    self.stir(led)
            fate(outcome)

        self.changes.submit(change, then)

    def records_visible(self) -> None:
        """Hear that there are new records."""
        for group in self._hungry:
            self.stir(group)

    def partition_changed(self) -> None:
        """Hear that something was applied that is not a record: it may have been a trim."""
        start = self.replica.partition.log.start_offset
        if start != self._start:
            self._start = start
            for group in self.groups.values():
                self.stir(group)

    def tidy(self) -> None:
        """Let go of what was read and not asked for again, and of groups that were deleted."""
        self.records.forget()
        known = self._known
        for name in [one for one in self._retry_times if one not in known]:
            del self._retry_times[name]

    def time_leapt(self, by: int) -> None:
        """Lead every group anew: the ends of leases and sessions were computed by another time.

        Members attach again and claim what they hold, as after a change of leader.
        """
        for times in self._retry_times.values():
            times.leapt(by)
        for group in list(self.groups.values()):
            self.drop(group, NotLeader(f"the time has leapt by {by / 1e6:.1f} s; attach again"))

    def close(self) -> None:
        """End: this node leads no more."""
        self.is_over = True
        leader = self.replica.raft.leader
        error = NotLeader("leadership has moved on", leader=node_of(leader) if leader else None)
        for group in list(self.groups.values()):
            group.close(error)
        self.groups.clear()
        self._stirred.clear()
        self._hungry.clear()
        for waiting in self._opening.values():
            for seat, _ in waiting:
                seat.drop(error)
        self._opening.clear()
        ending, self._ending = self._ending, {}
        for waiting in ending.values():
            for seat, _ in waiting:
                seat.drop(error)
        self.changes.abandon(error)
        self.records.forget()

    # --- for its groups -------------------------------------------------------------------------

    def stir(self, group: LedGroup) -> None:
        """Have a group step soon."""
        # An alarm may ring for a group that was let go since because nobody needed it, or for a
        # partition that another node leads by now. Nobody would take it off the list again: the
        # node would step for ever, without anything to do (seed 60542).
        if self.is_over or self.groups.get(group.group.name) is not group:
            return
        self._stirred[group] = None
        if not self._is_called:
            self._is_called = True
            self.around.soon(self._step)

    def drop(self, group: LedGroup, error: AngariumError) -> None:
        """Give a group up."""
        name = group.group.name
        if not isinstance(error, NotFound | NotLeader):
            _log.warning("group %s in %s %d begins anew: %s", name, self.topic, self.number, error)
            error = _unreadable(error)
        if self.groups.get(name) is group:
            del self.groups[name]
            if group.is_settling and not isinstance(error, NotFound):
                self._ending[name] = []
                group.on_settled = partial(self._ended, name)
        self._hungry.pop(group, None)
        self._stirred.pop(group, None)
        group.close(error)

    def _ended(self, name: str) -> None:
        """Let the members of a group that was given up join, now that its changes are applied."""
        for seat, wanted in self._ending.pop(name, ()):
            if not seat.is_gone:
                self.join(seat, wanted)

    def _step(self) -> None:
        self._is_called = False
        self.host.look_at_time()
        until = self.around.stopwatch_s() + SLICE_S
        while self._stirred and not self.is_over:
            group = next(iter(self._stirred))
            del self._stirred[group]
            group.step()
            if group.is_over or group.is_idle:
                self._hungry.pop(group, None)
                if not group.is_over and self.groups.get(group.group.name) is group:
                    del self.groups[group.group.name]
            elif group.wants_records:
                self._hungry[group] = None
            else:
                self._hungry.pop(group, None)
            if self.around.stopwatch_s() > until:
                break
        if self._stirred and not self._is_called:
            self._is_called = True
            self.around.soon(self._step)


def _unreadable(error: AngariumError) -> NotLeader:
    return NotLeader(f"the leader cannot read at the moment: {error}")
