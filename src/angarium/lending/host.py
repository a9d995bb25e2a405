"""The partitions this node leads, as far as consumer groups are concerned.

One alarm serves all groups of the node. A partition has an object here from the moment this node
may serve it until it may no more.
"""

from __future__ import annotations

import logging
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from angarium.errors import AngariumError, NotFound, NotLeader
from angarium.ids import Micros, node_of
from angarium.lending.led_partition import LedPartition
from angarium.lending.lending_limits import LEAP_MICROS
from angarium.lending.seat import LedSeat

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId, Term
    from angarium.lending.led_group import LedGroup
    from angarium.lending.ports import Membership, Sink, Surroundings, Wanted
    from angarium.replica.partition_replica import PartitionReplica

_log = logging.getLogger(__name__)


class GroupHost:
    """All that this node leads."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.led: dict[RaftGroupId, LedPartition] = {}
        self._wakes: list[tuple[int, int, LedGroup]] = []
        self._due: dict[LedGroup, int] = {}
        """The earliest time in `_wakes` at which each group is to step."""
        self._rings_at: int | None = None
        self._count = count()
        self._looked: dict[RaftGroupId, Term] = {}
        """By group: the term in which retries and dead letters were taken over last."""
        self._ahead: int | None = None
        """How far the time is ahead of the steady clock, as of the last look; None before it."""

    # --- what happens in the node ---------------------------------------------------------------

    def records_visible(self, raft_group: RaftGroupId) -> None:
        """Hear that a partition has new records."""
        led = self.led.get(raft_group)
        if led is not None:
            led.records_visible()

    def partition_changed(self, raft_group: RaftGroupId) -> None:
        """Hear that a partition changed hands, or that its groups changed."""
        replica = self.around.replicas.get(raft_group)
        led = self.led.get(raft_group)
        if led is not None and (replica is not led.replica or not led.is_current):
            self._close(led)
            led = None
        if led is not None:
            led.partition_changed()
        elif replica is not None and replica.may_serve:
            self._take_over(replica)

    def tidy(self) -> None:
        """Look at what nobody tells of; let go of what was read and not asked for again.

        Dead letters are looked for again: their group may have been given up (`drop`), and may have
        no members that would come back for them.
        """
        self.look_at_time()
        for led in list(self.led.values()):
            if self.around.replicas.get(led.raft_group) is not led.replica:
                self._close(led)
            else:
                led.tidy()
                led.owe_letters()

    def close(self) -> None:
        """Let go of everything."""
        for led in list(self.led.values()):
            self._close(led)

    def look_at_time(self) -> None:
        """Lead all groups anew if the time has leapt.

        Otherwise a lease that was given while the clock was an hour ahead would end an hour late,
        and its records would be held back for as long. Planted as leases-outlive-a-wrong-clock.
        """
        ahead = self.around.now() - self.around.steady()
        leap = 0 if self._ahead is None else ahead - self._ahead
        self._ahead = ahead
        if abs(leap) <= LEAP_MICROS:
            return
        groups = sum(len(led.groups) for led in self.led.values())
        _log.info("the time has leapt by %.1f s: %d groups are led anew", leap / 1e6, groups)
        self._wakes.clear()
        self._due.clear()
        self._rings_at = None
        for led in list(self.led.values()):
            led.time_leapt(leap)

    # --- members --------------------------------------------------------------------------------

    def attach(self, membership: Membership, wanted: Wanted, sink: Sink) -> LedSeat:
        """Let a member take part in a partition. What comes of it, the sink hears."""
        self.look_at_time()
        seat = LedSeat(membership, sink, credit=wanted.credit)
        try:
            led = self.partition(wanted.topic, wanted.partition)
        except AngariumError as error:
            # Not at once: the caller does not have its seat yet.
            self.around.soon(seat.drop, error)
        else:
            self.around.soon(self._join, led, seat, wanted)
        return seat

    def _join(self, led: LedPartition, seat: LedSeat, wanted: Wanted) -> None:
        if seat.is_gone:
            return
        if led.is_over:
            seat.drop(NotLeader("leadership has moved on"))
        else:
            led.join(seat, wanted)

    def partition(self, topic: str, number: int) -> LedPartition:
        """Return a partition this node leads; raises `NotFound` or `NotLeader`."""
        raft_group = self.around.raft_group_of(topic, number)
        replica = self.around.replicas.get(raft_group)
        if replica is None or not replica.may_serve:
            leader = None if replica is None else replica.raft.leader
            raise NotLeader(
                f"node {self.around.node} does not lead {topic} {number}",
                leader=node_of(leader) if leader else None,
            )
        led = self.led.get(raft_group)
        if led is not None and (led.replica is not replica or not led.is_current):
            self._close(led)
            led = None
        if led is None:
            led = self._lead(replica)
        if led is None:
            raise NotFound(f"Raft group {raft_group} belongs to no topic any more")
        return led

    def _lead(self, replica: PartitionReplica) -> LedPartition | None:
        known = self.around.partition_of(replica.group)
        if known is None:
            return None
        self.look_at_time()
        led = self.led[replica.group] = LedPartition(self, replica, *known)
        return led

    def _take_over(self, replica: PartitionReplica) -> None:
        """Take over the retries and the dead letters of an earlier leader, once in each term."""
        term = replica.raft.term
        if self._looked.get(replica.group) != term:
            groups = replica.partition.machine.groups.by_name
            is_owed = any(group.intents or group.attempts for group in groups.values())
            if not is_owed or self._lead(replica) is not None:
                self._looked[replica.group] = term

    def _close(self, led: LedPartition) -> None:
        if self.led.get(led.raft_group) is led:
            del self.led[led.raft_group]
        led.close()

    # --- for its partitions ---------------------------------------------------------------------

    def assign_anew(self) -> None:
        """Hear that it may be known by now who should have which partition."""
        for led in self.led.values():
            for group in led.groups.values():
                group.assign()

    def wake(self, group: LedGroup, at: Micros) -> None:
        """Have a group step at a time."""
        known = self._due.get(group)
        if known is not None and known <= at:
            return
        self._due[group] = at
        heappush(self._wakes, (at, next(self._count), group))
        if self._rings_at is None or at < self._rings_at:
            self._ring_at(at)

    def ring(self) -> None:
        """Have those groups step whose time has come."""
        self.look_at_time()
        self._rings_at = None
        now = self.around.now()
        wakes, due = self._wakes, self._due
        while wakes and wakes[0][0] <= now:
            at, _, group = heappop(wakes)
            if due.get(group) == at:
                del due[group]
                if not group.is_over:
                    group.led.stir(group)
        if wakes:
            self._ring_at(wakes[0][0])

    def _ring_at(self, at: int) -> None:
        self._rings_at = at
        self.around.ring_at(Micros(at))
