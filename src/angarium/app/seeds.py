"""Finding the others again after all of them have moved.

A node remembers where the others were. That is enough as long as some majority stays where it is:
it tells everybody else's new addresses. When all addresses change at once, say with the ports of a
local cluster, nobody finds anybody; then the addresses in `join` are where to look.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.ids import CATALOG_GROUP, NodeId
from angarium.node.joining import cluster_name
from angarium.wire import Hello, Role, dial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.app.addresses import Address
    from angarium.node.node import Node

ROUND_SECONDS: Final = 0.5
"""How often to look, until somebody leads."""

_log = logging.getLogger(__name__)


class Seeds:
    """Looks for members at the addresses it was given, until the catalog has a leader."""

    def __init__(self, node: Node, addresses: Sequence[Address]) -> None:
        self._node = node
        self._addresses = addresses

    async def run(self) -> None:
        """Look, as long as that can help."""
        while self._node.leader_of(CATALOG_GROUP) is None:
            await asyncio.gather(*(self._look_at(address) for address in self._addresses))
            await asyncio.sleep(ROUND_SECONDS)

    async def _look_at(self, address: Address) -> None:
        """Ask who is at `address`; a member of our cluster is linked to from now on."""
        try:
            connection = await dial(
                host=address.host, port=address.port, hello=Hello(role=Role.CLIENT), timeout_s=1.0
            )
        except AngariumError as error:
            _log.debug("nobody found", extra={"address": str(address), "reason": str(error)})
            return
        hello = connection.peer.hello
        await connection.close(timeout_s=0.5)
        is_ours = hello.cluster == cluster_name(self._node.identity)
        if is_ours and hello.node and hello.node != self._node.id:
            self._node.peers.know(NodeId(hello.node), str(address))
