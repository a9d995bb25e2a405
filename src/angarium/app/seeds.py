"""Finding the others again after addresses have changed.

A node remembers where the others were, and they where it was. When it comes back elsewhere, nobody
speaks to it, so it has to speak up; when all come back elsewhere at once, as with the ports of a
local cluster, nobody finds anybody. In both cases the addresses in `join` are where to look.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.ids import CATALOG_GROUP, NodeId
from angarium.node.joining import cluster_name
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinAnswer, JoinHeader, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.app.addresses import Address
    from angarium.node.node import Node
    from angarium.wire import Connection

ROUND_SECONDS: Final = 0.5
"""How often to look, until somebody leads."""

PATIENT_ROUNDS: Final = 4
"""So often a node only looks. Where nothing has moved a leader has shown by then; from here on it
tells whom it finds where it is, which is an entry in the catalog."""

ANSWER_SECONDS_MAX: Final = 2.0
"""A node that takes longer is asked again in the next round."""

_log = logging.getLogger(__name__)


class Seeds:
    """Looks for members at the addresses it was given, until the catalog has a leader."""

    def __init__(self, node: Node, addresses: Sequence[Address]) -> None:
        self._node = node
        self._addresses = addresses
        self._rounds = 0

    async def run(self) -> None:
        """Look, as long as that can help."""
        while not self._is_heard():
            await asyncio.gather(*(self._look_at(address) for address in self._addresses))
            self._rounds += 1
            await asyncio.sleep(ROUND_SECONDS)

    def _is_heard(self) -> bool:
        """Tell whether this node and the catalog's leader hear each other.

        To be told who leads is not enough: while no answer gets through, nothing is learned.
        """
        node = self._node
        leader = node.leader_of(CATALOG_GROUP)
        return leader is not None and (leader == node.id or node.peers.is_up(leader))

    async def _look_at(self, address: Address) -> None:
        try:
            connection = await dial(
                host=address.host,
                port=address.port,
                hello=Hello(role=Role.CLIENT),
                timeout_s=ANSWER_SECONDS_MAX,
                tls=self._node.config.tls,
            )
            try:
                await self._meet(connection, address)
            finally:
                await connection.close(timeout_s=ANSWER_SECONDS_MAX)
        except AngariumError as error:
            _log.debug("no help", extra={"address": str(address), "reason": str(error)})

    async def _meet(self, connection: Connection, address: Address) -> None:
        """Keep a link to a member of our cluster, and have it tell where we are."""
        node, hello = self._node, connection.peer.hello
        is_ours = hello.cluster == cluster_name(node.folder_identity)
        if not is_ours or not hello.node or hello.node == node.id:
            return
        node.peers.meet(NodeId(hello.node), str(address))
        if self._rounds < PATIENT_ROUNDS:
            return
        config = node.config
        header = JoinHeader(
            node.id,
            node.folder_identity.incarnation,
            tuple(sorted(node.addresses.items())),
            config.region,
            config.zone,
            config.host,
            config.release.level_min,
            config.release.level_max,
        )
        answer = await connection.request(Operation.JOIN, header, timeout_s=ANSWER_SECONDS_MAX)
        for peer, where in answer.read(JoinAnswer).peers:
            if not node.peers.is_up(peer):
                node.peers.meet(peer, where)
