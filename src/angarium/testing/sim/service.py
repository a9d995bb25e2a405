"""What a simulated node does for clients, in place of `angarium.service`.

It answers publishes, commands, fetches and questions for the end, and has a `Lender` serve the
consumer groups of each partition that the node leads. All is forgotten when the process ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from angarium.errors import AngariumError, NotLeader, OffsetOutOfRange, StorageError
from angarium.machine.commands import Cursors, Transacting
from angarium.replica.acks import Publishing
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.group_requests import Attach, Attached, Detach, Say
from angarium.testing.sim.lender import Lender
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
    from collections.abc import Callable

    from angarium.ids import GroupId
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
        self._sharing: dict[GroupId, list[Publishing]] = {}
        """Publishes that will go into one entry."""
        self._settling = Settling()
        self._lenders: dict[GroupId, Lender] = {}
        """What serves the consumer groups of each partition this node leads."""
        self._letters = 0

    def end(self) -> None:
        """Forget everything, as a process does that ends."""
        self._sharing.clear()
        self._settling = Settling()
        for lender in self._lenders.values():
            lender.end()
        self._lenders.clear()

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
            case Attach() | Detach() | Say():
                self._take_from_member(request)
            case PublishReply():
                for lender in self._lenders.values():
                    lender.letter_answered(request)
            case _:
                return False
        return True

    def _send(self, client: str, said: object) -> None:
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
        publishing = Publishing([bytearray(request.batch)], request.mode, reply)
        wait = self._world.settings.sharing_micros
        if not wait:
            self._admit(replica, [publishing])
        elif request.group in self._sharing:
            self._sharing[request.group].append(publishing)
        else:
            self._sharing[request.group] = [publishing]
            self._node.later(wait, self._share, host, request.group)

    def _share(self, host: Host, group: GroupId) -> None:
        self._admit(host.replicas[group], self._sharing.pop(group))

    def _admit(self, replica: PartitionReplica, requests: list[Publishing]) -> None:
        replica.publish(requests, now=self._world.clock_of(self._node))
        replica.process()

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
        replica.partition.submit(command, now=now, reply=reply)
        replica.process()
        if isinstance(command, Cursors) and request.group in self._lenders:
            # Whatever comes of it, its groups are looked at soon, and again when it is applied.
            lender = self._lenders[request.group]
            self._world.scheduler.after(50 * MILLISECOND, self.tell_lender, lender, None, None)

    def _fetch(self, host: Host, request: FetchRequest) -> None:
        replica = host.replicas.get(request.group)
        if replica is None:
            return
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
        found = tuple(bytes(batch) for batch in batches)
        self._send(request.client, FetchReply(request.number, node.id, found))

    def _high_water(self, host: Host, request: HighWaterRequest) -> None:
        replica = host.replicas.get(request.group)
        if replica is None:
            return

        def done(refused: AngariumError | None) -> None:
            if refused is None:
                said = HighWaterReply(request.number, self._node.id, replica.end_offset)
                self._send(request.client, said)

        replica.read_index(done)
        replica.process()

    # --- consumer groups --------------------------------------------------------------------

    def begin_to_lead(self, replica: PartitionReplica, term: int) -> None:
        """Serve the groups of a partition that this node leads from now on."""
        if self._world.settings.members:
            self._lenders[replica.group] = Lender(self._node, replica, term)

    def cease_to_lead(self, group: GroupId) -> None:
        """Serve the groups of a partition no more."""
        if group in self._lenders:
            self._lenders.pop(group).end()

    def _take_from_member(self, request: Attach | Detach | Say) -> None:
        lender = self._lenders.get(request.partition)
        if lender is not None:
            lender.take(request)
        elif isinstance(request, Attach):
            self._send(request.client, Attached(request.number, self._node.id, False))

    def next_letter(self) -> int:
        """Return a number for a request of this node's own."""
        self._letters += 1
        return self._letters

    def step_lender(self, lender: Lender, at: int) -> None:
        """Let a lender do what it planned for this time."""
        if lender.is_due(at) and not self._node.puts_off(self.step_lender, lender, at):
            self._node.do(lender.step)

    def tell_lender(self, lender: Lender, action: Callable[[Any], None] | None, fact: Any) -> None:
        """Let a lender hear of something, unless it is over; without an action, look at all."""
        if lender.is_over or self._node.puts_off(self.tell_lender, lender, action, fact):
            return
        if action is None:
            self._node.do(lender.touch_all)
        else:
            self._node.do(action, fact)
