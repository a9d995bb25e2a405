"""A second cluster, formed by mistake where a node of the first one was.

A machine whose disk was replaced may be started as it was started the first time, with --form: it
forms a cluster of its own, and takes records that the first one never sees. It cannot know better,
but the nodes of the first cluster go on looking for it. Whoever is alone in a cluster, and is
looked for by nodes of another one, says so and is not ready.

A node that comes back after its cluster was recovered without it hears of that here, too, from the
nodes that look for it: it ends.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from angarium.addresses import dialled
from angarium.errors import AngariumError
from angarium.node.greetings import DIAL_S_MAX
from angarium.node.joining import cluster_name
from angarium.wire import Role, dial
from angarium.wire.errors import ClusterSucceeded
from angarium.wire.handshake import SuccessorHello

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.addresses import Address
    from angarium.node.node import Node
    from angarium.wire import Hello

HEARD_S: Final = 10.0
"""So long a greeting counts: links try again every two seconds."""


class SecondCluster:
    """What a node hears from nodes of another cluster."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hello: Hello | None = None
        self._heard_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def hear(self, hello: Hello) -> None:
        """Hear that somebody of another cluster takes this node for one of theirs."""
        if hello.role in (Role.PEER, Role.PEER_BULK) and hello.node:
            self._hello, self._heard_at = hello, time.monotonic()
            node = self._node
            if isinstance(hello, SuccessorHello) and node.is_open:
                self._look(hello)

    def _look(self, hello: Hello) -> None:
        """Ask whoever says that the cluster went on without this node, where it says it is.

        Anybody may greet; who is dialled has to prove that it is a node, where that is asked for.
        """
        config = self._node.config
        if hello.successor_of(cluster_name(self._node.folder_identity)) is None:
            return
        address = dialled(hello.address) if isinstance(hello.address, str) else None
        if address is None or (config.tls is None and not config.are_peers_trusted):
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._ask(address))

    async def _ask(self, address: Address) -> None:
        node = self._node
        try:
            connection = await dial(
                host=address.host,
                port=address.port,
                hello=node.greeting(Role.PEER),
                timeout_s=DIAL_S_MAX,
                tls=node.config.tls,
            )
        except ClusterSucceeded as succeeded:
            node.succeeded(succeeded)
        except AngariumError:
            return
        else:
            await connection.close(timeout_s=DIAL_S_MAX)

    def reasons(self) -> Iterator[str]:
        """Say that this may be a second cluster, as long as the first one looks for this node.

        A node that is not alone is needed where it is, whatever a stranger says.
        """
        hello = self._hello
        if hello is None or time.monotonic() - self._heard_at >= HEARD_S:
            return
        if list(self._node.catalog.machine.nodes.by_id) != [self._node.id]:
            return
        where = f" ({hello.address})" if isinstance(hello.address, str) else ""
        yield (
            f"node {hello.node}{where} of the cluster {hello.cluster} looks here for a node of its "
            "own, and this node has formed a cluster by itself: what is published here is not in "
            "that one. If the disk of that node was replaced, empty this data folder and start it "
            "with --join and ANGARIUM_NODE_ID, not with --form; if not, give this one another port"
        )
