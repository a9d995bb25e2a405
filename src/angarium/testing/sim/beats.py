"""The beat between simulated nodes, and who counts as silent by it: the decision of real ones.

Connections have no place in a simulation: packets that are cut off vanish, and nothing says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from angarium.node.liveness import Beats, patience_s
from angarium.replica.round_trips import ALLOWED_TICKS_MAX
from angarium.testing.sim.clock import SECOND

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.sim.node import SimNode


class Beat(NamedTuple):
    """A heartbeat of one node."""

    sender: NodeId


class SimBeats:
    """What one simulated node knows of the others being alive."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world
        replica = node.world.settings.host.replica
        self._tick_s = node.world.settings.tick / SECOND
        self._election_s = replica.election_ticks * self._tick_s
        self._look_ticks = replica.vouch_ticks
        self._heard: set[NodeId] = set()
        self._silent: set[NodeId] = set()
        self._beats = self._new()

    def begin(self) -> None:
        """Begin to look, as a process that knows nothing."""
        self._heard, self._silent, self._beats = set(), set(), self._new()
        self._node.later(self._node.id * 1_000, self._look)

    def handle(self, payload: object) -> bool:
        """Take a beat; False if it is something else."""
        if isinstance(payload, Beat):
            self._heard.add(payload.sender)
            return True
        return False

    @property
    def silent(self) -> frozenset[NodeId]:
        """The nodes that count as unreachable."""
        return frozenset(self._silent)

    @property
    def patience(self) -> int:
        """The longest that this node waits for one of the others, in µs."""
        return max(int(self._patience(one) * SECOND) for one in self._others)

    def _new(self) -> Beats:
        return Beats(look_s=self._look_ticks * self._tick_s, patience=self._patience)

    @property
    def _others(self) -> list[NodeId]:
        return [one for one in self._world.node_ids if one != self._node.id]

    def _patience(self, node: NodeId) -> float:
        host = self._node.host
        way = 0.0 if host is None else host.round_trips.of(node)
        return patience_s(
            election_s=self._election_s,
            way_s=way * self._tick_s,
            way_s_max=ALLOWED_TICKS_MAX * self._tick_s,
        )

    def _look(self) -> None:
        self._node.later(self._look_ticks * self._world.settings.tick, self._look)
        for other in self._others:
            self._send(other)
        self._beats.look(self._others, heard=self._heard)
        self._heard = set()
        host = self._node.host
        assert host is not None
        for other in self._others:
            if self._beats.is_silent(other) != (other in self._silent):
                (self._silent.remove if other in self._silent else self._silent.add)(other)
                self._world.note(self._node.name, "sees a change of node", other)
                host.link_changed(other)

    def _send(self, to: NodeId) -> None:
        self._world.network.send_once(self._node.name, f"node-{to}", Beat(self._node.id))
