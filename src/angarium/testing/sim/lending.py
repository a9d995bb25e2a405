"""The simulator's side of leading groups: `angarium.lending` decides, this does.

What `service.groups.hosting` is on the event loop, in simulated time, and what the wire door is to
members: seats here, sinks over a network that loses and reorders. The catalog is not simulated:
whoever asks it is answered, a little later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from angarium.api import Settlement, Start, StartAt, Verb
from angarium.batch import Batch
from angarium.delivery import assignment
from angarium.errors import AngariumError, CorruptData, NotFound, NotLeader
from angarium.ids import NodeId, RaftGroupId
from angarium.lending.gates import is_drained
from angarium.lending.host import GroupHost
from angarium.lending.ports import Membership, Opening, Wanted
from angarium.modes import DeliveryMode
from angarium.node.release import LEVEL_MAX
from angarium.replica.acks import Published
from angarium.testing.sim.burials import Burials
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.group_requests import (
    Attach,
    Attached,
    Detach,
    DrainedReply,
    DrainedRequest,
    Heard,
    Message,
    Parting,
    Say,
    Took,
)
from angarium.testing.sim.watched_delivery import WatchedDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from angarium.api import GroupConfig, Settled
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.kinds import GroupKind
    from angarium.lending.led_partition import LedPartition
    from angarium.lending.letters import Burial
    from angarium.lending.ports import Lending
    from angarium.lending.seat import LedSeat
    from angarium.machine.changes import Change
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome
    from angarium.replica.acks import Reply
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.group_history import Settle
    from angarium.testing.sim.group_requests import GroupReply, GroupRequest
    from angarium.testing.sim.node import SimNode

TIDY = 5 * SECOND
ASKED_MAX = 100
"""Questions to other nodes whose answers are waited for."""
TOPIC = "simulated"
"""All partitions are of one topic, numbered as their Raft groups are."""


class SimLending:
    """Implements `lending.ports.Surroundings` on a simulated node, for one life of its process."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world
        self.host = GroupHost(self)
        self.burials = Burials(node)
        self._alarm = 0
        """Counts the times it was set: only the last one rings."""
        self._asked = 0
        self._asking: dict[int, Callable[[Sequence[int]], None]] = {}
        self._seats: dict[tuple[str, int], LedSeat] = {}
        """By member and number of its attachment."""
        node.later(TIDY, self._tidy)

    def _tidy(self) -> None:
        self._node.later(TIDY, self._tidy)
        self.host.tidy()

    # --- what members say -----------------------------------------------------------------------

    def take(self, request: GroupRequest) -> None:
        """Take what a member says; what comes from an attachment that is no more is not heard."""
        key = (request.client, request.number)
        seat = self._seats.get(key)
        match request:
            case Attach():
                self._seats[key] = self._attach(request)
            case _ if seat is None:
                pass
            case Took():
                seat.taken(request.bytes)
            case Say():
                self._note(request)
                verb, ranges = Verb[request.verb.upper()], request.ranges
                said = Settlement(
                    TOPIC,
                    request.partition,
                    verb,
                    ranges,
                    reason="asked to" if verb in {Verb.NACK, Verb.REJECT} else "",
                    cumulative=request.cumulative,
                )
                sink = seat.sink
                assert isinstance(sink, _Sink)
                seat.ask(sink.number_of(request.settle), (said,))
            case Detach():
                del self._seats[key]
                if request.how is Parting.UNSEEN:
                    seat.orphan()
                else:
                    seat.detach(lost=request.how is Parting.LOST)
            case _:
                assert_never(request)

    def _attach(self, request: Attach) -> LedSeat:
        topics = (TOPIC,)
        node = self._node.id
        membership = Membership(request.name, request.client, node, request.number, topics)
        opening = Opening(request.kind, request.config, Start(StartAt.EARLIEST))
        wanted = Wanted(TOPIC, request.partition, opening, request.credit, request.held)
        return self.host.attach(membership, wanted, _Sink(self, request))

    def _note(self, request: Say) -> None:
        """Write down what the leader knows of what a member says, before it hears it."""
        machine = self.replicas[request.partition].partition.machine
        group = machine.groups.by_name.get(request.name)
        if group is not None:
            request.settle.generation = group.generation
            if request.verb == "nack":
                attempts = group.attempts.get(request.ranges[0])
                request.settle.attempt = 1 if attempts is None else attempts.count + 1

    def check_keys(self, attach: Attach, lending: Lending) -> None:
        """Check that all is settled that comes before what is lent, in a topic that grows."""
        for growing in self._world.growing:
            pairs = list(zip(lending.ranges[::2], lending.ranges[1::2], strict=True))
            for buffer in lending.batches:
                for record in Batch.parse(buffer, compacted=True):
                    is_lent = any(start <= record.offset < end for start, end in pairs)
                    if is_lent and record.value is not None:
                        growing.lent(attach.partition, attach.name, record.value)

    def say(self, client: str, said: GroupReply | DrainedRequest | DrainedReply) -> None:
        """Tell a member, or another node, something."""
        self._world.network.send_once(self._node.name, client, said)

    def forget(self, client: str, number: int) -> None:
        """Hear no more of an attachment."""
        self._seats.pop((client, number), None)

    def change(self, raft_group: RaftGroupId, change: Change, reply: Reply) -> None:
        """Have a group changed by somebody who looks after it, as `service.groups.wishes` does."""
        try:
            led = self.host.partition(TOPIC, raft_group)
        except AngariumError:
            reply(NotLeader())
            return

        def told(outcome: Outcome | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                reply(outcome)
            else:
                term = led.replica.raft.term
                reply(Published(DeliveryMode.CONSISTENT, term, (outcome,)))

        led.change(change, told)

    # --- for groups -----------------------------------------------------------------------------

    @property
    def node(self) -> NodeId:
        return self._node.id

    @property
    def replicas(self) -> Mapping[RaftGroupId, PartitionReplica]:
        assert self._node.host is not None
        return self._node.host.replicas

    @property
    def level(self) -> int:
        return LEVEL_MAX

    def now(self) -> Micros:
        return self._world.clock_of(self._node)

    def steady(self) -> int:
        return self._world.scheduler.now

    def stopwatch_s(self) -> float:
        return 0.0

    def soon(self, action: Callable[..., object], *arguments: object) -> None:
        self._node.later(0, self._do, action, *arguments)

    def _do(self, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except CorruptData as error:
            # An event loop would log it and go on; whoever waits for this would wait for ever.
            self._world.history.incidents.append(f"{self._node.name}: nobody met {error}")

    def ring_at(self, at: Micros) -> None:
        self._alarm += 1
        self._node.later(max(at - self.now(), 0), self._ring, self._alarm)

    def _ring(self, alarm: int) -> None:
        if alarm == self._alarm:
            self.host.ring()

    def carry_on(self) -> None:
        """Nothing to be done: what was proposed is carried out after every event."""

    def raft_group_of(self, topic: str, number: int) -> RaftGroupId:
        del topic
        for growing in self._world.growing:
            # A node that has not heard of a partition leads no group of it: it does not know with
            # which layout it came.
            if number not in growing.views[self._node.id].groups:
                raise NotFound(f"there is no partition {number} yet")
        return RaftGroupId(number)

    def partition_of(self, raft_group: RaftGroupId) -> tuple[str, int] | None:
        for growing in self._world.growing:
            if raft_group not in growing.views[self._node.id].groups:
                return None
        return TOPIC, raft_group

    def layouts(self, topic: str) -> tuple[int, ...]:
        del topic
        # Partitions are numbered from 1 here; none has the number 0.
        for growing in self._world.growing:
            return tuple(one + 1 for one in growing.views[self._node.id].layouts)
        return ()

    def ask_drained(
        self,
        topic: str,
        partitions: Sequence[int],
        group: str,
        layout: int,
        told: Callable[[Sequence[int]], None],
    ) -> None:
        del topic
        told([0, *self.drained(group, layout, partitions)])
        others = tuple(one for one in partitions if one and self._is_lacking(one))
        if others:
            self._asked += 1
            self._asking[self._asked] = told
            self._asking.pop(self._asked - ASKED_MAX, None)
            target = self._node.rng.choice(self._world.node_ids)
            asked = DrainedRequest(self._node.name, self._asked, group, layout, others)
            self.say(f"node-{target}", asked)

    def _is_lacking(self, partition: int) -> bool:
        replica = self.replicas.get(RaftGroupId(partition))
        return replica is None or bool(replica.shortfall())

    def drained(self, group: str, layout: int, partitions: Sequence[int]) -> list[int]:
        """Return those that are drained, as this node's replicas say."""
        found = []
        for one in partitions:
            replica = self.replicas.get(RaftGroupId(one))
            if replica is not None and is_drained(replica, group, layout):
                found.append(one)
                for growing in self._world.growing:
                    growing.note_floors(replica.group, replica.partition.machine)
        return found

    def take_drained(self, said: DrainedRequest | DrainedReply) -> None:
        """Answer another node about this one's replicas, or hear its answer."""
        if isinstance(said, DrainedRequest):
            found = tuple(self.drained(said.group, said.layout, said.partitions))
            self.say(said.client, DrainedReply(said.number, found))
        elif said.number in self._asking:
            self._asking.pop(said.number)(said.partitions)

    def lifetime(self, topic: str) -> int | None:
        del topic
        return None

    def delivery(
        self,
        led: LedPartition,
        group: Group,
        source: RecordSource,
        *,
        retry_times: RetryTimes,
        now: Micros,
        expected: Sequence[str],
    ) -> WatchedDelivery:
        return WatchedDelivery(
            self._node, led, group, source, retry_times=retry_times, now=now, expected=expected
        )

    def preferred(
        self,
        members: dict[str, tuple[str, ...]],
        topic: str,
        number: int,
        nodes: Mapping[str, NodeId],
    ) -> str:
        del nodes
        return assignment(members, [(topic, number)]).get((topic, number), "")

    def carry_out(self, burial: Burial) -> None:
        self.burials.carry_out(burial)


class _Sink:
    """A member at the other end of the network. Implements `lending.ports.Sink`."""

    __slots__ = ("_asked", "_attach", "_lending", "_sequence")

    def __init__(self, lending: SimLending, attach: Attach) -> None:
        self._lending = lending
        self._attach = attach
        self._sequence = 0
        """Of the last message: a connection would keep them in order."""
        self._asked: dict[int, Settle] = {}

    def number_of(self, settle: Settle) -> int:
        """Return a number under which the answer to something said will come."""
        number = len(self._asked) + 1
        self._asked[number] = settle
        return number

    def attached(self, kind: GroupKind, config: GroupConfig) -> None:
        del kind, config
        self._say(Attached(self._attach.number, self._lending.node, True))

    def lent(self, lending: Lending) -> None:
        self._lending.check_keys(self._attach, lending)
        self._send(lending.ranges, lending.attempt, lending.bytes)

    def withdrawn(self, ranges: tuple[int, ...]) -> None:
        self._send(ranges, 0, 0)

    def told(self, ask: int, settled: Sequence[Settled]) -> None:
        for one in settled:
            self._say(Heard(self._attach.number, self._asked[ask], one.code))

    def allowed(self, credit: int) -> None:
        """Nobody changes it here."""

    def dropped(self, error: AngariumError) -> None:
        number = self._attach.number
        hint = NodeId(error.leader) if isinstance(error, NotLeader) and error.leader else None
        self._lending.forget(self._attach.client, number)
        self._say(Attached(number, self._lending.node, False, hint))

    def _send(self, ranges: tuple[int, ...], attempt: int, size: int) -> None:
        self._sequence += 1
        self._say(Message(self._attach.number, self._sequence, ranges, attempt, size))

    def _say(self, said: GroupReply) -> None:
        self._lending.say(self._attach.client, said)
