"""Which nodes are alive: a beat between every two nodes, whether their groups are active or not.

Raft cannot say it. A quiescent group sends nothing (decision 0006), and two nodes need not share a
group at all. TCP does not say it either: packets that vanish break no connection for minutes. So
each node counts how long nothing at all has come from another one, over any connection with it, and
pings where nothing came. A busy connection therefore carries no beat of its own.

A node that was silent for two of the longest election timeouts, and the way there and back besides
(decision 0027), counts as unreachable: requests to it fail at once, its quiescent groups wake, and
readiness, `cluster status` and metrics say so. After twice that its connections are aborted, which
ends whatever still waits for an answer, and the link dials anew. Until then they stay: a node that
was only paused goes on where it was. While the link to a node is down, the connections that the
node has dialled are measured, and aborted, in the same way.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.replica.round_trips import ALLOWED_TICKS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from angarium.ids import NodeId
    from angarium.node.node import Node
    from angarium.wire import Connection

LOOK_S_MIN: Final = 0.1
"""The shortest interval between two measurements of silence, however short ticks are."""

PATIENCE_S_MIN: Final = 1.5
"""The shortest silence that counts, however short ticks are: a process that is paused for a second
(garbage collection, a disk, SIGSTOP) must not be taken for one that is cut off."""

ABORT_FACTOR: Final = 2
"""After so many times the patience the connections of a silent node are aborted."""

_log = logging.getLogger(__name__)


def patience_s(*, election_s: float, way_s: float, way_s_max: float) -> float:
    """Return after how many seconds of silence a node counts as unreachable.

    `election_s` is the shortest election timeout, half of the longest; `way_s` is the measured
    round trip to the node, of which at most `way_s_max` is allowed for.
    """
    return max(4 * election_s, PATIENCE_S_MIN) + min(way_s, way_s_max)


class Beats:
    """How long each node has been silent, counted in looks.

    Looks instead of clock time: a process that was stopped for a minute looks once when it goes on,
    and does not take its own pause for the silence of the others.
    """

    def __init__(self, *, look_s: float, patience: Callable[[NodeId], float]) -> None:
        """`patience` returns how many seconds a node may be silent."""
        self._look_s = look_s
        self._patience = patience
        self._looks: dict[NodeId, int] = {}

    def look(self, nodes: Collection[NodeId], *, heard: Collection[NodeId]) -> None:
        """Count one interval for `nodes`, of which those in `heard` have sent something."""
        before = self._looks
        self._looks = {one: 0 if one in heard else before.get(one, 0) + 1 for one in nodes}

    def silent_s(self, node: NodeId) -> float:
        """Return for how long nothing has come from a node."""
        return self._looks.get(node, 0) * self._look_s

    def is_silent(self, node: NodeId) -> bool:
        """Return whether a node counts as unreachable."""
        return self.silent_s(node) >= self._patience(node)

    def is_given_up(self, node: NodeId) -> bool:
        """Return whether the connections with a node are to be aborted."""
        return self.silent_s(node) >= ABORT_FACTOR * self._patience(node)


class Liveness:
    """Measures the silence of one node's peers. Its owner runs `run` as a task."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._tick_s = node.config.tick_ms / 1_000
        replica = node.config.host_config.replica
        self._election_s = replica.election_ticks * self._tick_s
        self._look_s = max(replica.vouch_ticks * self._tick_s, LOOK_S_MIN)
        self._beats = Beats(look_s=self._look_s, patience=self._patience)
        self.silences = 0
        """How often a node has become unreachable by its silence."""

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await asyncio.sleep(self._look_s)
            self.look()

    def look(self) -> None:
        """Look once: ping where nothing came, and mark or abort what was silent for too long."""
        peers = self._node.peers
        found = {one: list(self._connections(one)) for one in peers.ids}
        connected = {one: connections for one, connections in found.items() if connections}
        heard: set[NodeId] = set()
        for one, connections in connected.items():
            # Of all of them: what came over one must not count at the next look.
            news = [connection.take_heard() for connection in connections]
            if True in news:
                heard.add(one)
                continue
            control = peers.control(one)
            for connection in connections if control is None else (control,):
                connection.ping()
        self._beats.look(connected, heard=heard)
        for one in connected:
            if self._beats.is_given_up(one):
                self._abort(one)
            elif peers.control(one) is None:
                continue  # it is unreachable anyhow
            elif self._beats.is_silent(one) != peers.is_silent(one):
                self._mark(one)

    def _patience(self, node: NodeId) -> float:
        return patience_s(
            election_s=self._election_s,
            way_s=self._node.host.round_trips.of(node) * self._tick_s,
            way_s_max=ALLOWED_TICKS_MAX * self._tick_s,
        )

    def _connections(self, node: NodeId) -> Iterable[Connection]:
        """Yield every connection with a node, whichever side has dialled."""
        yield from self._node.peers.connections(node)
        yield from self._node.admission.guests_of(node)

    def _mark(self, node: NodeId) -> None:
        """Report that a node has fallen silent, or that it sends again."""
        silent_s = self._beats.silent_s(node)
        if self._beats.is_silent(node):
            self.silences += 1
            _log.warning("nothing has come from node %d for %.1f s", node, silent_s)
            self._node.quorum.fell_silent(node, silent_s)
        else:
            _log.info("node %d is heard again", node)
        self._node.peers.mark(node, is_silent=self._beats.is_silent(node))

    def _abort(self, node: NodeId) -> None:
        why = f"has been silent for {self._beats.silent_s(node):.1f} s"
        for connection in list(self._connections(node)):
            connection.give_up(why)
