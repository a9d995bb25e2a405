"""What a simulated node does for clients, in place of `angarium.service`.

It answers publishes, commands, fetches and questions for the end, and has `angarium.lending` serve
the consumer groups of the partitions that the node leads. All is forgotten when the process ends.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.errors import AngariumError, NotLeader, OffsetOutOfRange, StorageError
from angarium.ids import Offset
from angarium.machine.commands import Cursors, Transacting
from angarium.replica.acks import Publishing
from angarium.service.fetching import before
from angarium.testing.sim.group_requests import (
    Attach,
    Detach,
    DrainedReply,
    DrainedRequest,
    Say,
    Took,
)
from angarium.testing.sim.lending import SimLending
from angarium.testing.sim.nearby import Nearby
from angarium.testing.sim.requests import (
    FetchReply,
    FetchRequest,
    HighWaterReply,
    HighWaterRequest,
    PublishReply,
    PublishRequest,
    SubmitRequest,
)
from angarium.testing.sim.settling import Settling

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.replica.acks import Published
    from angarium.replica.host import Host
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode
    from angarium.wire.operations.transactions import Told


class SimService:
    """The clients' side of one simulated node."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world
        self._sharing: dict[RaftGroupId, list[Publishing]] = {}
        """Publishes that will go into one entry."""
        self._settling = Settling()
        self.nearby = Nearby(node)
        """What serves those who read at the nearest replica."""
        self.lending: SimLending | None = None
        """What serves consumer groups, in a run that has some."""

    def begin(self) -> None:
        """Serve groups, as a process does that has just started."""
        self.nearby = Nearby(self._node)
        if self._world.settings.members:
            self.lending = SimLending(self._node)

    def end(self) -> None:
        """Forget everything, as a process does that ends."""
        self._sharing.clear()
        self._settling = Settling()
        self.lending = None

    def handle(self, host: Host, request: object) -> bool:
        """Do what a client asks for; False if this is not from a client."""
        match request:
            case PublishRequest():
                self._publish(host, request)
            case SubmitRequest():
                self._submit(host, request)
            case FetchRequest():
                self._fetch(host, request)
            case HighWaterRequest():
                self._high_water(host, request)
            case Attach() | Detach() | Say() | Took() if self.lending is not None:
                self.lending.take(request)
            case HighWaterReply():
                self.nearby.heard(request)
            case DrainedRequest() | DrainedReply():
                if self.lending is not None:
                    self.lending.take_drained(request)
            case PublishReply() if self.lending is not None:
                self.lending.burials.answered(request)
            case _:
                return False
        return True

    def _send(self, client: str, said: PublishReply | FetchReply | HighWaterReply) -> None:
        is_refusal = isinstance(said, PublishReply) and isinstance(said.answer, AngariumError)
        if self._node.is_for_witnesses and not is_refusal:
            self._world.history.incidents.append(f"{self._node.name} has only witnesses: {said}")
        self._world.network.send_once(self._node.name, client, said)

    # --- records ----------------------------------------------------------------------------

    def _publish(self, host: Host, request: PublishRequest) -> None:
        def reply(answer: Published | AngariumError) -> None:
            self._send(request.client, PublishReply(request.number, self._node.id, answer))

        replica = host.replicas.get(request.group)
        if replica is None:
            reply(NotLeader())
            return
        # The leader stamps in place, and what the network holds may arrive twice.
        batches = [bytearray(one) for one in (request.batch, *request.more)]
        dealt = None
        for growing in self._world.growing:
            dealt = growing.dealt(self._node.id, request.group, request.layout)
        publishing = Publishing(batches, request.mode, reply, dealt)
        for rebalancing in self._world.rebalancings:
            rebalancing.published(self._node, replica)
        wait = self._world.settings.sharing_micros
        if not wait:
            self._admit(replica, [publishing])
        elif request.group in self._sharing:
            self._sharing[request.group].append(publishing)
        else:
            self._sharing[request.group] = [publishing]
            self._node.later(wait, self._share, host, request.group)

    def _share(self, host: Host, raft_group: RaftGroupId) -> None:
        self._admit(host.replicas[raft_group], self._sharing.pop(raft_group))

    def _admit(self, replica: PartitionReplica, requests: list[Publishing]) -> None:
        if self._node.time is not None:
            self._node.time.note_taken(requests)
        hold = self._world.settings.holding_micros
        replica.publish(requests, now=self._world.clock_of(self._node), may_wait=hold > 0)
        if replica.raft.holds_entries:
            self._node.later(hold, replica.send_held)
        else:
            replica.poke()

    def _submit(self, host: Host, request: SubmitRequest) -> None:
        command = request.command
        replica = host.replicas.get(request.group)

        def reply(answer: Published | AngariumError, known: Told | None = None) -> None:
            self._send(request.client, PublishReply(request.number, self._node.id, answer, known))

        if replica is None:
            reply(NotLeader())
            return
        now = self._world.clock_of(self._node)
        if isinstance(command, Transacting):
            self._settling.submit(request.group, replica, command, now=now, reply=reply)
            return
        if isinstance(command, Cursors) and self.lending is not None:
            (change,) = command.changes
            self.lending.change(request.group, change, reply)
            return
        replica.partition.submit(command, now=now, reply=reply)
        replica.poke()

    def _fetch(self, host: Host, request: FetchRequest) -> None:
        replica = host.replicas.get(request.group)
        if replica is None or replica.shortfall():
            return  # whoever asks has to ask another
        if self.nearby.may_answer(request, replica):
            self.answer_fetch(request, replica)
        else:
            self.nearby.wait(request, replica)

    def answer_fetch(self, request: FetchRequest, replica: PartitionReplica) -> None:
        """Answer with what this replica has from an offset on."""
        node = self._node
        try:
            batches = replica.fetch(request.offset, bytes_max=request.bytes_max)
        except OffsetOutOfRange as outside:
            # Trimmed away, or this replica is not there yet.
            if request.offset < outside.start:
                self._send(request.client, FetchReply(request.number, node.id, (), outside.start))
            return
        except StorageError as damaged:
            self._world.note(node.name, "cannot serve:", damaged)
            return
        end = replica.end_offset
        is_stopped = False
        for growing in self._world.growing if request.layout is not None else ():
            assert request.layout is not None
            if request.group not in growing.views[node.id].groups:
                return  # it has not heard of that partition
            view, number = growing.views[node.id], growing.topics.partitions[request.group].number
            fence = replica.partition.machine.fence(request.layout + 1)
            if view.born(number) > request.layout:
                fence = Offset(0)
            if fence is not None:
                batches = before(batches, fence)
                is_stopped = not batches
        found = tuple(bytes(batch) for batch in batches)
        self._send(
            request.client,
            FetchReply(
                request.number,
                node.id,
                found,
                end=end,
                staleness=self.nearby.staleness(replica),
                answered=self._world.scheduler.now,
                is_stopped=is_stopped,
            ),
        )

    def _high_water(self, host: Host, request: HighWaterRequest) -> None:
        replica = host.replicas.get(request.group)
        if replica is None:
            return

        def done(refused: AngariumError | None) -> None:
            if refused is not None:
                return
            found: tuple[bytes, ...] | None = None
            with suppress(OffsetOutOfRange, StorageError):
                batches = replica.fetch(request.offset, bytes_max=request.bytes_max)
                found = tuple(bytes(batch) for batch in batches)
            said = HighWaterReply(request.number, self._node.id, replica.end_offset, found)
            self._send(request.client, said)

        replica.read_index(done)
        replica.poke()
