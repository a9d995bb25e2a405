"""The partitions this node leads, as far as consumer groups are concerned.

One timer serves all groups of the node. A partition has an object here from the moment this node
may serve it until it may no more.
"""

from __future__ import annotations

import asyncio
import random
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, NotFound, NotLeader
from angarium.service.groups.assigning import Assigning
from angarium.service.groups.dead_letters import DeadLetters
from angarium.service.groups.led_partition import LedPartition
from angarium.service.groups.seat import LedSeat

if TYPE_CHECKING:
    from angarium.ids import GroupId, Micros, Term
    from angarium.node.node import Node
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.groups.led_group import LedGroup
    from angarium.service.groups.ports import Membership, Sink, Wanted
    from angarium.service.publishing import PublishDesk
    from angarium.service.topics import TopicDesk

TIDY_S: Final = 5.0
"""How often what was read and not asked for again is let go of."""


class GroupHost:
    """All that this node leads."""

    def __init__(self, node: Node, topics: TopicDesk, publishing: PublishDesk) -> None:
        self.node = node
        self.led: dict[GroupId, LedPartition] = {}
        self.dead_letters = DeadLetters(node, topics, publishing)
        self._assigning = Assigning(self._assign_anew)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._wakes: list[tuple[int, int, LedPartition, LedGroup]] = []
        self._due: dict[LedGroup, int] = {}
        """The earliest time in `_wakes` at which each group is to step."""
        self._count = count()
        self._looked: dict[GroupId, Term] = {}
        """In which term of this node's it was looked for dead letters to take over."""
        self._chance = random.Random()

    # --- what happens in the node ---------------------------------------------------------------

    def records_came(self, place: GroupId) -> None:
        """Hear that a partition has new records."""
        led = self.led.get(place)
        if led is not None:
            led.records_came()

    def happened(self, place: GroupId) -> None:
        """Hear that a partition changed hands, or that its groups changed."""
        replica = self.node.host.replicas.get(place)
        led = self.led.get(place)
        if led is not None and (replica is not led.replica or not led.is_current):
            self._close(led)
            led = None
        if led is not None:
            led.happened()
        elif replica is not None and replica.may_serve:
            self._owe_letters(replica)

    async def run(self) -> None:
        """Look, now and then, at what nobody tells of; let go of everything when cancelled."""
        try:
            while True:
                await asyncio.sleep(TIDY_S)
                for led in list(self.led.values()):
                    if self.node.host.replicas.get(led.place) is not led.replica:
                        self._close(led)
                    else:
                        led.records.forget()
        finally:
            for led in list(self.led.values()):
                self._close(led)
            if self._timer is not None:
                self._timer.cancel()

    # --- members --------------------------------------------------------------------------------

    def attach(self, membership: Membership, wanted: Wanted, sink: Sink) -> LedSeat:
        """Let a member take part in a partition. What comes of it, the sink hears."""
        seat = LedSeat(membership, sink, credit=wanted.credit)
        try:
            led = self.partition(wanted.topic, wanted.partition)
        except AngariumError as error:
            # Not at once: whoever attaches does not have its seat yet.
            asyncio.get_running_loop().call_soon(seat.drop, error)
        else:
            asyncio.get_running_loop().call_soon(self._join, led, seat, wanted)
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
        place = self.node.catalog.partition(topic, number).group
        replica = self.node.host.replicas.get(place)
        if replica is None or not replica.may_serve:
            leader = None if replica is None else self.node.leader_of(place)
            raise NotLeader(f"node {self.node.id} does not lead {topic} {number}", leader=leader)
        led = self.led.get(place)
        if led is not None and (led.replica is not replica or not led.is_current):
            self._close(led)
            led = None
        return led if led is not None else self._lead(place)

    def _lead(self, place: GroupId) -> LedPartition:
        known = self.node.catalog.machine.topics.partitions.get(place)
        if known is None:
            raise NotFound(f"group {place} belongs to no topic any more")
        topic = self.node.catalog.machine.topics.by_id[known.topic].name
        led = LedPartition(self, self.node.host.replicas[place], topic, known.number)
        self.led[place] = led
        return led

    def _owe_letters(self, replica: PartitionReplica) -> None:
        """Take over the dead letters that an earlier leader promised, once in each term."""
        term = replica.raft.term
        if self._looked.get(replica.group) != term:
            self._looked[replica.group] = term
            groups = replica.partition.machine.groups.by_name
            if any(group.intents for group in groups.values()):
                self._lead(replica.group)

    def _close(self, led: LedPartition) -> None:
        if self.led.get(led.place) is led:
            del self.led[led.place]
        led.close()

    # --- for its partitions ---------------------------------------------------------------------

    def seed(self) -> int:
        """Return chance for one group."""
        return self._chance.getrandbits(64)

    def preferred(self, members: dict[str, tuple[str, ...]], topic: str, number: int) -> str:
        """Return who of the members, with the topics each consumes, should have a partition."""
        topics = self.node.catalog.machine.topics
        return self._assigning.preferred(members, topic, number, topics)

    def _assign_anew(self) -> None:
        for led in self.led.values():
            for group in led.groups.values():
                group.assign()

    def wake(self, led: LedPartition, group: LedGroup, at: Micros) -> None:
        """Have a group step at a time."""
        known = self._due.get(group)
        if known is not None and known <= at:
            return
        self._due[group] = at
        heappush(self._wakes, (at, next(self._count), led, group))
        if self._timer is None or at < self._timer_at:
            self._set_timer(at)

    def _set_timer(self, at: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        wait_s = max(at - self.node.now(), 0) / 1_000_000
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self.node.now()
        wakes, due = self._wakes, self._due
        while wakes and wakes[0][0] <= now:
            at, _, led, group = heappop(wakes)
            if due.get(group) == at:
                del due[group]
                if not group.is_over:
                    led.stir(group)
        if wakes:
            self._set_timer(wakes[0][0])
