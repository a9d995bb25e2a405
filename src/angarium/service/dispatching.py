"""PERFORMANCE mode: from memory to the subscribers connected now, on whichever node they are.

The leader of the partition puts the batches in order and sends each once to every node that has
subscribers; nothing is stored anywhere. Nodes tell each other how many subscribers they have for
which partitions, so that nobody is sent what nobody wants.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from angarium.api import Ack, Delivery
from angarium.batch import Batch, split
from angarium.errors import AngariumError
from angarium.ids import NodeId
from angarium.modes import DeliveryMode
from angarium.wire.operations import Operation, PartitionsHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import PublishRequest
    from angarium.ids import Buffer, RaftGroupId, Term
    from angarium.service.own_node import OwnNode
    from angarium.wire import Connection, Frame

TELL_EVERY_S = 1.0
"""How often a node repeats what its subscribers want, for peers that were away."""

KNOWN_S_MAX = 0.5
"""How long a subscription waits for a node to say that it knows. One that says nothing for so long
is stuck, or cut off, and hands out nothing either; it is told again when it is back."""


class _Dispatch(msgspec.Struct, frozen=True, array_like=True):
    """Batches for the subscribers of a partition; they are in the payload."""

    topic: str
    partition: int


class _Interests(msgspec.Struct, frozen=True, array_like=True):
    """Everything a node's subscribers want: topic, partition, how many."""

    wanted: tuple[tuple[str, int, int], ...]


class LiveReader(Protocol):
    """A subscriber that takes batches from memory."""

    def push(self, delivery: Delivery) -> None:
        """Take a delivery at once, or drop it if too much waits already."""


class Dispatcher:
    """Hands batches to subscribers here and elsewhere."""

    def __init__(self, node: OwnNode) -> None:
        self._node = node
        self._here: defaultdict[tuple[str, int], set[LiveReader]] = defaultdict(set)
        self._elsewhere: dict[NodeId, dict[tuple[str, int], int]] = {}
        self._counter = 0
        self.handed_on: Counter[RaftGroupId] = Counter()
        """Records that this node handed on as the leader of a partition, since it was started."""
        self._is_telling = False
        self._round: asyncio.Task[None] | None = None
        """Telling all nodes, about to begin: all who want to know wait for the same one."""
        self._last_round: asyncio.Task[None] | None = None

    # --- who listens ------------------------------------------------------------------------

    def listen(self, topic: str, partition: int, reader: LiveReader) -> None:
        """Hand `reader` what is published to a partition in PERFORMANCE mode."""
        self._here[topic, partition].add(reader)
        self._tell_soon()

    def leave(self, topic: str, partition: int, reader: LiveReader) -> None:
        """Hand it nothing more."""
        readers = self._here.get((topic, partition))
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._here[topic, partition]
            self._tell_soon()

    async def known(self) -> None:
        """Return when all nodes that can be reached know what is wanted here by now."""
        if self._round is None:
            self._round = self._last_round = asyncio.create_task(self._tell_and_hear())
        await asyncio.shield(self._round)

    async def settled(self) -> None:
        """Return when everybody knows who had begun to wait for it; mostly at once."""
        if self._last_round is not None:
            await asyncio.shield(self._last_round)

    async def run(self) -> None:
        """Repeat what this node's subscribers want, until cancelled."""
        while True:
            self._tell()
            await asyncio.sleep(TELL_EVERY_S)

    def hear_interests(self, connection: Connection, frame: Frame) -> None:
        """Take what another node's subscribers want."""
        told = frame.read(_Interests)
        self._elsewhere[NodeId(connection.peer.hello.node)] = {
            (topic, partition): count for topic, partition, count in told.wanted
        }

    def _tell_soon(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._is_telling = False
        told = self._interests()
        for peer in self._node.peers.ids:
            self._node.peers.send(peer, Operation.INTERESTS, told)

    def tell_one(self, peer: NodeId) -> None:
        """Tell a node that may just have come up."""
        self._node.peers.send(peer, Operation.INTERESTS, self._interests())

    def _interests(self) -> _Interests:
        return _Interests(
            tuple(
                (*topic_partition, len(readers))
                for topic_partition, readers in sorted(self._here.items())
            )
        )

    async def _tell_and_hear(self) -> None:
        self._round = None  # those who listen from here on are in the next one
        self._tell()
        peers = self._node.peers
        await asyncio.gather(*(self._hear(one) for one in peers.ids if peers.is_up(one)))

    async def _hear(self, peer: NodeId) -> None:
        # A node takes what comes over one connection in turn: its answer to anything at all says
        # that it has heard what was told before.
        with suppress(AngariumError):
            await self._node.peers.request(
                peer, Operation.PARTITIONS, PartitionsHeader(()), timeout_s=KNOWN_S_MAX
            )

    # --- what they get ----------------------------------------------------------------------

    def publish(
        self, group: RaftGroupId, request: PublishRequest, batches: Sequence[Buffer], term: Term
    ) -> list[Ack]:
        """As the leader, hand batches to everybody who listens; nothing is stored."""
        topic_partition = (request.topic, request.partition)
        self.handed_on[group] += sum(len(Batch.trusted(one)) for one in batches)
        reached = self._deliver(*topic_partition, batches)
        for peer, wanted in self._elsewhere.items():
            count = wanted.get(topic_partition, 0)
            header = _Dispatch(*topic_partition)
            if count and self._node.peers.send(peer, Operation.DISPATCH, header, batches):
                reached += count
        acks = []
        for _ in batches:
            self._counter += 1
            acks.append(
                Ack(
                    mode=DeliveryMode.PERFORMANCE,
                    topic=request.topic,
                    partition=request.partition,
                    term=term,
                    id=f"{term}.{self._counter}",
                    subscribers=reached,
                )
            )
        return acks

    def hear_dispatch(self, _: Connection, frame: Frame) -> None:
        """Take batches that a leader elsewhere sends to this node's subscribers."""
        header = frame.read(_Dispatch)
        self._deliver(header.topic, header.partition, split(frame.payload))

    def _deliver(self, topic: str, partition: int, batches: Sequence[Buffer]) -> int:
        readers = self._here.get((topic, partition), ())
        if readers:
            delivery = Delivery(topic=topic, partition=partition, batches=tuple(batches), live=True)
            for reader in readers:
                reader.push(delivery)
        return len(readers)
