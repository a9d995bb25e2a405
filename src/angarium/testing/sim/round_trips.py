"""How far the other machines are, measured as a real node does it: it asks, and counts.

Only in runs with several regions: elsewhere the way is a small part of a tick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.testing.sim.clock import SECOND

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.sim.node import SimNode

ROUND: Final = SECOND


class Ping(NamedTuple):
    """Are you there?"""

    sender: NodeId
    asked: int


class Pong(NamedTuple):
    """I am."""

    sender: NodeId
    asked: int


class SimRoundTrips:
    """What one simulated node measures."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world

    def begin(self) -> None:
        """Begin to ask, as a process that knows nothing."""
        self._node.later(self._node.id * 1_000, self._round)

    def handle(self, payload: object) -> bool:
        """Take a question or an answer; False if it is something else."""
        if isinstance(payload, Ping):
            self._send(payload.sender, Pong(self._node.id, payload.asked))
        elif isinstance(payload, Pong):
            host = self._node.host
            assert host is not None
            taken = self._world.scheduler.now - payload.asked
            host.round_trips.note(payload.sender, taken / self._world.settings.tick)
        else:
            return False
        return True

    def _round(self) -> None:
        self._node.later(ROUND, self._round)
        for other in self._world.node_ids:
            if other != self._node.id:
                self._send(other, Ping(self._node.id, self._world.scheduler.now))

    def _send(self, to: NodeId, said: Ping | Pong) -> None:
        self._world.network.send_once(self._node.name, f"node-{to}", said)
