"""Finding the others again after addresses have changed.

A node remembers where the others were, and they where it was. When it comes back elsewhere, nobody
speaks to it, so it has to speak up; when all come back elsewhere at once, as with the ports of a
local cluster or restarted pods, nobody finds anybody. In both cases its lookout says where to look:
the addresses in `join`, and whoever else can be asked. What the data folder remembers may be wrong
as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import AngariumError, JoinRefused
from angarium.ids import CATALOG_GROUP, NodeId
from angarium.node.joining import REMIND_S, cluster_name, join_token_now
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinAnswer, JoinHeader, Operation

if TYPE_CHECKING:
    from angarium.addresses import Address
    from angarium.node.node import Node
    from angarium.wire import Connection

ROUND_SECONDS: Final = 0.5
"""How often to look, until somebody leads."""

PATIENT_ROUNDS: Final = 4
"""So often a node only looks. Where nothing has moved a leader has shown by then; from here on it
tells whom it finds where it is, which is an entry in the catalog."""

ELECTION_SECONDS: Final = 5.0
"""For so long a node that has heard a leader before waits for the next one: elections pass."""

ANSWER_SECONDS_MAX: Final = 2.0
"""A node that takes longer is asked again in the next round."""

JOIN_SECONDS_MAX: Final = 8.0
"""How long a node may take to note where this one is: it and the catalog's leader first ask at the
address from before, for `bindings.ANSWER_S_MAX` each."""

LINK_SECONDS: Final = 2.0
"""So long a link to a node that was met has to come up before it is met elsewhere."""

LOOKED_AT_ONCE_MAX: Final = 32
"""Addresses that are dialled at the same time; the others follow."""

_log = logging.getLogger(__name__)


class Seeds:
    """Looks for members where the node's lookout says, while the catalog has no leader for it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._rounds = 0
        self._dialled = asyncio.Semaphore(LOOKED_AT_ONCE_MAX)
        self._met_at: dict[NodeId, float] = {}
        """When each node was met last."""
        self._told_at = -math.inf

    async def run(self) -> None:
        """Look, whenever that can help."""
        if not self._node.lookout.sources:
            return
        while True:
            while not self._is_heard():
                await self._look()
                self._rounds += 1
                await asyncio.sleep(ROUND_SECONDS)
            await self._lose_leader()
            self._rounds = 0

    async def _lose_leader(self) -> None:
        """Wait until no leader has been heard for so long that it may be elsewhere."""
        silence_s = 0.0
        while silence_s < ELECTION_SECONDS:
            await asyncio.sleep(ROUND_SECONDS)
            silence_s = 0.0 if self._is_heard() else silence_s + ROUND_SECONDS

    async def _look(self) -> None:
        look = await self._node.lookout.look()
        own = self._node.addresses["wire"]
        elsewhere = [one for one in look.addresses if str(one) != own]
        await asyncio.gather(*map(self._look_at, elsewhere))

    def _is_heard(self) -> bool:
        """Tell whether this node and the catalog's leader hear each other.

        To be told who leads is not enough: while no answer gets through, nothing is learned.
        """
        node = self._node
        leader = node.leader_of(CATALOG_GROUP)
        return leader is not None and (leader == node.id or node.peers.is_up(leader))

    async def _look_at(self, address: Address) -> None:
        try:
            async with self._dialled:
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
        met = NodeId(hello.node)
        # One with two addresses, of IPv4 and of IPv6, answers at both in every round: each would
        # tear down the link to the other before it is up.
        if not self._is_just_met(met):
            self._met_at[met] = asyncio.get_running_loop().time()
            node.peers.meet(met, str(address))
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
        try:
            answer = await connection.request(Operation.JOIN, header, timeout_s=JOIN_SECONDS_MAX)
        except JoinRefused as refused:
            # Nodes ask for one here only if the number is bound to another NAME than is shown.
            token = join_token_now(config) if node.bindings.is_renamed else ""
            if not token:
                self._tell(str(refused))
                raise
            header = msgspec.structs.replace(header, token=token)
            answer = await connection.request(Operation.JOIN, header, timeout_s=JOIN_SECONDS_MAX)
        for peer, where in answer.read(JoinAnswer).peers:
            # Where it is said to be counts less than where it has just answered.
            if not node.peers.is_up(peer) and not self._is_just_met(peer):
                node.peers.meet(peer, where)

    def _tell(self, refusal: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= REMIND_S:
            self._told_at = now
            _log.warning("the other nodes do not speak to this one: %s", refusal)

    def _is_just_met(self, node: NodeId) -> bool:
        met_at = self._met_at.get(node, -math.inf)
        return asyncio.get_running_loop().time() - met_at < LINK_SECONDS
