"""A second cluster, formed by mistake where a node of the first one was.

A machine whose disk was replaced may be started as it was started the first time, with --form: it
forms a cluster of its own, and takes records that the first one never sees. It cannot know better,
but the nodes of the first cluster go on looking for it. Whoever is alone in a cluster, and is
looked for by nodes of another one, says so and is not ready.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from angarium.wire import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def hear(self, hello: Hello) -> None:
        """Hear that somebody of another cluster takes this node for one of theirs."""
        if hello.role in (Role.PEER, Role.PEER_BULK) and hello.node:
            self._hello, self._heard_at = hello, time.monotonic()

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
