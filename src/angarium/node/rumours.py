"""Rumours that a node is gone: from whoever is asked where nodes are, a Serf agent or Kubernetes.

A rumour decides nothing. It is a reason to ask the node itself, over the connection there is or a
new one. If it answers, that is all. If it does not, what it leads here looks for another leader at
once instead of after an election timeout; what the other replicas say to that is theirs to decide,
and whoever hears the leader refuses (`replica/hastening.py`). Who is a member is the catalog's
business, and no rumour's.

So an agent that lies can have a node asked whether it is there, and no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from angarium.addresses import dialled
from angarium.errors import AngariumError, OutcomeUnknown
from angarium.telemetry.exposition import Family, Sample
from angarium.wire import Hello, Role, Unreachable, dial
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from angarium.addresses import Address
    from angarium.ids import NodeId
    from angarium.node.node import Node

DOUBT_S: Final = 30.0
"""For so long a rumour counts: a node that is being stopped is said to be gone a moment before."""

ASK_AGAIN_S: Final = 1.0
"""How often a node is asked meanwhile; sooner if the link to it breaks."""

ANSWER_S_MIN: Final = 0.25
ANSWER_S_MAX: Final = 1.0
"""How long a node has to answer: half of an election timeout, but within these bounds."""

_log = logging.getLogger(__name__)


class Rumours:
    """What one node has heard about others being gone. Its owner runs `run` as a task."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._doubted: dict[NodeId, float] = {}
        """Who is said to be gone, and until when that counts."""
        self._contradicted: set[NodeId] = set()
        """Who has answered since that was said."""
        self._news = asyncio.Event()
        self._counts: Counter[str] = Counter()
        config = node.config
        election_s = config.host_config.replica.election_ticks * config.tick_ms / 1_000
        self._answer_s_max = min(max(election_s / 2, ANSWER_S_MIN), ANSWER_S_MAX)
        if config.probe_gone:
            node.lookout.on_gone = self.hear_gone
            node.lookout.on_back = self.hear_back

    def hear_gone(self, addresses: Collection[Address]) -> None:
        """Hear that nobody is at these addresses any more."""
        until = _now() + DOUBT_S
        for address in addresses:
            node = self._node.peers.at(address)
            if node is not None:
                self._doubted[node] = until
                self._contradicted.discard(node)
                self._news.set()

    def hear_back(self, addresses: Collection[Address]) -> None:
        """Hear that somebody is at these addresses."""
        for address in addresses:
            node = self._node.peers.at(address)
            if node is not None:
                self._doubted.pop(node, None)

    def link_changed(self, node: NodeId) -> None:
        """Hear that the way to a node was lost, or is there again."""
        if node in self._doubted:
            self._news.set()

    async def run(self) -> None:
        """Ask everybody who is said to be gone, as long as that is said."""
        while True:
            await self._news.wait()
            while self._doubted:
                self._news.clear()
                await asyncio.gather(*map(self._look_into, list(self._doubted)))
                await self._pause()
                now = _now()
                self._doubted = {one: until for one, until in self._doubted.items() if until > now}
            self._news.clear()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(ASK_AGAIN_S):
                await self._news.wait()
        except TimeoutError:
            return

    async def _look_into(self, gone: NodeId) -> None:
        node = self._node
        if await self._answers(gone):
            self._counts["alive"] += 1
            if gone not in self._contradicted:
                self._contradicted.add(gone)
                _log.info("node %d is said to be gone, and answers: nothing changes", gone)
            return
        self._counts["silent"] += 1
        # It may have been said to be back while we waited for it.
        begun = node.host.hasten_elections(gone) if gone in self._doubted else 0
        if begun:
            _log.warning(
                "node %d is said to be gone, and does not answer: what it leads elects others",
                gone,
                extra={"replicas": begun},
            )
            node.wake()

    async def _answers(self, gone: NodeId) -> bool:
        """Tell whether there is somebody: a refusal is an answer, too."""
        peers = self._node.peers
        connection = peers.connection(gone)
        try:
            if connection is not None:
                await connection.request(Operation.READINESS, timeout_s=self._answer_s_max)
                return True
            where = dialled(peers.address_of(gone))
            if where is None:
                return False
            connection = await dial(
                host=where.host,
                port=where.port,
                hello=Hello(role=Role.CLIENT),
                expected_node=gone,
                timeout_s=self._answer_s_max,
                tls=self._node.config.tls,
            )
            connection.fail(Unreachable("it was only asked whether it is there"))
        except (Unreachable, OutcomeUnknown):
            return False
        except AngariumError:
            return True
        return True

    def families(self) -> Iterable[Family]:
        """Return metrics."""
        yield Family(
            "angarium_discovery_probes_total",
            "counter",
            "Nodes that were said to be gone and asked whether they are, by what came of it.",
            tuple(Sample(self._counts[one], (("outcome", one),)) for one in ("alive", "silent")),
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
