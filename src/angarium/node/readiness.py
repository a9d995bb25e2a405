"""Whether this node should be relied on, and if not, why: one place for every reason.

What knows one (damage, a replica that lags, a clock that is off, a majority that is gone) adds a
source; ready is who has no reason not to be. Every reason is a whole sentence for people: it names
topics and partitions, never groups of Raft, and ends with what to do where somebody has to do
something. `/readyz` prints them, `cluster status` lists them for every node, the log says when they
come and go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.node.own_facts import NodeFacts
from angarium.wire.operations import Operation, ReadinessAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.ids import NodeId
    from angarium.node.node import Node
    from angarium.node.own_facts import OwnFacts

LOOK_S: Final = 1.0
"""How often a node looks whether it is ready, and asks the others: what it found may be so old."""

ANSWER_S_MAX: Final = 1.0
"""How long another node may take to say how it is."""

REASONS_MAX: Final = 20
"""So many are told; with more of them only the number of the others is."""

_log = logging.getLogger(__name__)


class Readiness:
    """What speaks against a node, and what the other nodes say of themselves."""

    def __init__(
        self,
        node: Node,
        own_facts: OwnFacts | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._own_facts = own_facts
        self._clock = clock
        self.sources: list[Callable[[], Iterable[str]]] = []
        """Each is asked for reasons once per `LOOK_S` at the most; they do not wait."""
        self._others: dict[NodeId, tuple[str, ...]] = {}
        self._facts: dict[NodeId, NodeFacts] = {}
        self._full: set[NodeId] = set()
        self._logged: tuple[str, ...] = ()
        self._found: tuple[str, ...] | None = None
        self._found_at = 0.0

    def reasons(self) -> tuple[str, ...]:
        """Return why this node should not be relied on; nothing if it may.

        The sources look at every partition, and many ask: what they found holds for `LOOK_S`.

        Whether the catalog has a leader at the moment is no part of it: a node serves records
        without one, and would otherwise be taken out just while the cluster elects.
        """
        node = self._node
        if node.failure is not None:
            return (f"failed: {node.failure}",)
        if not node.is_open:
            return (node.asking.sentence,)
        now = self._clock()
        if self._found is None or not 0 <= now - self._found_at < LOOK_S:
            self._found, self._found_at = self._look(), now
        return self._found

    def look_again(self) -> None:
        """Drop the cached answer: something has changed that the sources depend on."""
        self._found = None

    def _look(self) -> tuple[str, ...]:
        node = self._node
        found = [] if node.is_member else ["not a member yet"]
        for source in self.sources:
            try:
                found += source()
            except AngariumError as error:  # it needs what this node lacks
                found += [] if str(error) in found else [str(error)]
        if len(found) > REASONS_MAX:
            found[REASONS_MAX:] = [f"and {len(found) - REASONS_MAX} more reasons"]
        return tuple(found)

    def of(self, node: NodeId) -> tuple[str, ...]:
        """Return the same for any node, as it said itself a moment ago."""
        return self.reasons() if node == self._node.id else self._others.get(node, ())

    def facts_of(self, node: NodeId) -> NodeFacts:
        """Return what a node tells of itself, as it said a moment ago."""
        if node == self._node.id:
            return NodeFacts() if self._own_facts is None else self._own_facts.now()
        return self._facts.get(node, NodeFacts())

    def is_disk_full(self, node: NodeId) -> bool:
        """Tell whether another node takes no records for want of room, as it said a moment ago."""
        return node in self._full

    async def run(self) -> None:
        """Say in the log what comes and goes, and hear how the others are."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._tell()
            await self.hear()

    async def hear(self) -> None:
        """Ask the other nodes how they are, now: one may have been started a moment ago."""
        peers = [one for one in self._node.peers.ids if self._node.peers.is_up(one)]
        told = await asyncio.gather(*map(self._ask, peers))
        self._others = dict(zip(peers, told, strict=True))

    async def _ask(self, peer: NodeId) -> tuple[str, ...]:
        try:
            frame = await self._node.peers.request(
                peer, Operation.READINESS, timeout_s=ANSWER_S_MAX
            )
            answer = frame.read(ReadinessAnswer)
            self._node.marks.note(peer, answer.durable_end)
            self._facts[peer] = NodeFacts(
                answer.version,
                answer.started_at,
                answer.certificate_days,
                answer.disk_free_bytes,
                answer.shared_mode,
            )
            (self._full.add if answer.is_disk_full else self._full.discard)(peer)
            return answer.unready
        except AngariumError:  # silent, or of a release that does not know the question
            return ()

    def _tell(self) -> None:
        before, self._logged = self._logged, self.reasons()
        for reason in self._logged:
            if reason not in before:
                _log.warning("not ready: %s", reason)
        if before and not self._logged:
            _log.info("ready again")
