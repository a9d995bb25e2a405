"""The other nodes: a link to each for Raft and requests, and one apart for bulk.

Segments and repairs go over a connection of their own, so that copying a partition never delays a
heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.addresses import dialled
from angarium.errors import AngariumError, LimitExceeded
from angarium.ids import Incarnation, NodeId, node_of, replica_id
from angarium.replica.peers import encode_peer_message
from angarium.wire import Hello, Link, Role, Unreachable, WireLimits
from angarium.wire.operations import Operation
from angarium.wire.raft_codec import RAFT_OPERATION, packed_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from angarium.addresses import Address
    from angarium.ids import Buffer, RaftGroupId, ReplicaId
    from angarium.raft.messages import Message
    from angarium.replica.peers import PeerMessage
    from angarium.security.tls import Dialling
    from angarium.wire import Connection, Frame, Header

_log = logging.getLogger(__name__)

_LIMITS = WireLimits()


class _Peer:
    """One other node."""

    def __init__(
        self,
        address: str,
        greeting: Callable[[Role], Hello],
        node: NodeId,
        on_change: Callable[[NodeId], None],
        on_refused: Callable[[AngariumError], None],
        tls: Dialling | None,
    ) -> None:
        # Whoever joins may say anything: a link to nowhere never comes up, and does no harm.
        host, port = dialled(address) or ("", 0)
        self.address = address
        self.seen_at: Address | None = None
        """Where it answered last, by number: `address` may have a name."""
        self._tell = on_change
        self._node = node
        self.control = Link(
            host=host,
            port=port,
            greeting=lambda: greeting(Role.PEER),
            expected_node=node,
            limits=_LIMITS,
            on_change=self._changed,
            on_refused=on_refused,
            tls=tls,
        )
        self.bulk = Link(
            host=host,
            port=port,
            greeting=lambda: greeting(Role.PEER_BULK),
            expected_node=node,
            limits=_LIMITS,
            tls=tls,
        )
        self.tasks = [asyncio.create_task(self.control.run()), asyncio.create_task(self.bulk.run())]

    def _changed(self, link: Link) -> None:
        if link.connection is not None:
            self.seen_at = dialled(link.connection.address)
        self._tell(self._node)

    async def stop(self) -> None:
        """Close both links."""
        for link in (self.control, self.bulk):
            with suppress(TimeoutError, asyncio.CancelledError):
                await link.stop(timeout_s=1.0)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Peers:
    """Links to every other node of the cluster."""

    def __init__(
        self,
        greeting: Callable[[Role], Hello],
        *,
        tls: Callable[[NodeId], Dialling | None] = lambda _: None,
        on_change: Callable[[NodeId], None],
        on_refused: Callable[[AngariumError], None],
    ) -> None:
        """Greet others with `greeting`; `on_change` hears which node's link went up or down, and
        `on_refused` why one did not come up, or ended. `tls` returns how a node is dialled."""
        self._greeting = greeting
        self._tls = tls
        self._on_refused = on_refused
        self._on_change = on_change
        self._peers: dict[NodeId, _Peer] = {}
        self._silent: set[NodeId] = set()
        """Nodes with an open link over which nothing has come for too long (`Liveness`)."""
        self._leaving: set[asyncio.Task[None]] = set()
        self._told: dict[NodeId, str] = {}
        """Where the catalog last said that each node is."""
        self._met: dict[NodeId, str] = {}
        """Where nodes were found that the catalog still believes elsewhere."""

    @property
    def ids(self) -> list[NodeId]:
        """The nodes there are links to."""
        return sorted(self._peers)

    def is_up(self, node: NodeId) -> bool:
        """Tell whether `node` can be reached now: its link is up, and it is not silent."""
        return self.control(node) is not None and node not in self._silent

    def is_silent(self, node: NodeId) -> bool:
        """Return whether nothing has come from `node` for too long, though its link is up."""
        return node in self._silent

    def mark(self, node: NodeId, *, is_silent: bool) -> None:
        """Count a node whose link is up as unreachable, or as reachable again."""
        (self._silent.add if is_silent else self._silent.discard)(node)
        self._on_change(node)

    def is_up_as(self, replica: ReplicaId) -> bool:
        """Tell whether a node can be reached now, and still has the disk that `replica` lives on.

        A node that came back with an empty one greets with another incarnation.
        """
        return self.replica_at(node_of(replica)) == replica

    def replica_at(self, node: NodeId) -> ReplicaId | None:
        """Return who answers as `node`; None while nobody does."""
        connection = self.connection(node)
        if connection is None:
            return None
        hello = connection.peer.hello
        return replica_id(NodeId(hello.node), Incarnation(hello.incarnation))

    def connection(self, node: NodeId) -> Connection | None:
        """Return the connection to `node`, while it can be reached."""
        return None if node in self._silent else self.control(node)

    def control(self, node: NodeId) -> Connection | None:
        """Return the connection to `node` while its link is up, even if the node is silent."""
        peer = self._peers.get(node)
        return None if peer is None else peer.control.connection

    def connections(self, node: NodeId) -> list[Connection]:
        """Return every open connection that this node has dialled to `node`."""
        peer = self._peers.get(node)
        links = () if peer is None else (peer.control, peer.bulk)
        return [one.connection for one in links if one.connection is not None]

    def address_of(self, node: NodeId) -> str:
        """Return where `node` is looked for."""
        peer = self._peers.get(node)
        return "" if peer is None else peer.address

    def at(self, address: Address) -> NodeId | None:
        """Return who is looked for at `address`, or has answered there; None if nobody."""
        for node, peer in self._peers.items():
            if peer.address == str(address) or peer.seen_at == address:
                return node
        return None

    def meet(self, node: NodeId, address: str) -> None:
        """Keep a link to `node` at `address`, where somebody has just answered as that node.

        This holds until the catalog says something new: it may be old, and links need a moment to
        come up. What it has said all along would else tear down each link before it is there.
        """
        self._met[node] = address
        self._keep(node, address)

    def know(self, node: NodeId, address: str) -> None:
        """Keep a link to `node` at `address`, as the catalog says."""
        before = self._told.get(node)
        self._told[node] = address
        # The first word after a start is what the catalog knew before it.
        if before is not None and before != address:
            self._met.pop(node, None)
        if node not in self._met:
            self._keep(node, address)

    def _keep(self, node: NodeId, address: str) -> None:
        known = self._peers.get(node)
        if known is not None:
            # What answers was checked to be `node`: where it is beats where it is said to be.
            if known.address == address or self.is_up(node):
                return
            self._drop(node)
        self._peers[node] = _Peer(
            address, self._greeting, node, self._link_changed, self._on_refused, self._tls(node)
        )

    def _link_changed(self, node: NodeId) -> None:
        self._silent.discard(node)  # a link that is new has just been heard
        self._on_change(node)

    def look_at_home(self, node: NodeId) -> None:
        """Keep the link to `node` where the catalog says it is, whatever answers elsewhere."""
        self._met.pop(node, None)
        told = self._told.get(node)
        if told is not None and self.address_of(node) not in ("", told):
            self._drop(node)
            self._keep(node, told)

    def home_of(self, node: NodeId) -> str:
        """Return where the catalog says that `node` is; empty if it does not."""
        return self._told.get(node, "")

    def forget(self, node: NodeId) -> None:
        """Close the link to a node that is no longer a member."""
        self._told.pop(node, None)
        self._met.pop(node, None)
        self._drop(node)

    def _drop(self, node: NodeId) -> None:
        self._silent.discard(node)
        peer = self._peers.pop(node, None)
        if peer is not None:
            task = asyncio.create_task(peer.stop())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def stop(self) -> None:
        """Close every link."""
        for node in self.ids:
            self.forget(node)
        if self._leaving:
            await asyncio.gather(*self._leaving, return_exceptions=True)

    # --- sending ----------------------------------------------------------------------------

    def send_raft(self, messages: Iterable[tuple[RaftGroupId, Message]]) -> None:
        """Send Raft messages, all for one node packed together; what cannot leave is lost."""
        by_node: defaultdict[NodeId, list[tuple[RaftGroupId, Message]]] = defaultdict(list)
        for group, message in messages:
            by_node[node_of(message.to)].append((group, message))
        for node, addressed in by_node.items():
            peer = self._peers.get(node)
            if peer is None or not peer.control.is_up:
                continue
            try:
                for frame in packed_messages(addressed, frame_bytes_max=_LIMITS.frame_bytes_max):
                    peer.control.send(RAFT_OPERATION, frame[0], frame[1])
                # Now, not at the end of the turn: the disk's thread is about to take its share.
                peer.control.flush()
            except LimitExceeded as too_large:
                _log.warning("a Raft message for node %d cannot travel: %s", node, too_large)

    def tell(self, message: PeerMessage) -> None:
        """Send a message outside of Raft."""
        peer = self._peers.get(node_of(message.to))
        if peer is not None:
            peer.bulk.send(Operation.PEER, b"", [encode_peer_message(message)])

    def send(
        self, node: NodeId, operation: int, header: Header, payload: Sequence[Buffer] = ()
    ) -> bool:
        """Send a one-way message to `node`; False if it was dropped."""
        peer = self._peers.get(node)
        return peer is not None and peer.control.send(operation, header, payload)

    async def request(
        self,
        node: NodeId,
        operation: int,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        timeout_s: float,
    ) -> Frame:
        """Ask `node`; raises `Unreachable` while there is no way to it, or it is silent."""
        link = self.link(node)
        return await link.request(operation, header, payload, timeout_s=timeout_s)

    def link(self, node: NodeId) -> Link:
        """Return the link to `node`, for streams; raises `Unreachable`."""
        peer = self._peers.get(node)
        if peer is None:
            raise Unreachable(f"node {node} is not known here")
        if node in self._silent:
            raise Unreachable(f"nothing comes from node {node} ({peer.address}) any more")
        return peer.control
