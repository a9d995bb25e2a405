"""How long the way to other nodes and back takes, as far as elections have to know.

Within a data centre a round trip is a small part of a tick, and nothing here changes anything.
Between regions it may be as long as an election timeout: candidates would give up before the votes
they asked for could arrive, and campaign against each other. So each replica waits longer than
`election_ticks` by the round trip within which a majority of its voters can answer. A partition
whose voters are all in one region stays as quick as ever, and where they are not, those with the
shortest way to a majority tend to be elected.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from angarium.ids import node_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from angarium.ids import NodeId, ReplicaId

SAMPLES_MAX: Final = 8
"""Round trips of each node that are remembered. The shortest counts: a node that was busy when it
was asked is not far away."""

ALLOWED_TICKS_MAX: Final = 20
"""No election waits longer than this for votes, however far its voters say they are; a second with
the default tick, where the way round the earth and back takes 0.3."""


class RoundTrips:
    """What one node has measured."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: dict[NodeId, deque[float]] = {}

    def __bool__(self) -> bool:
        return bool(self._samples)

    def note(self, node: NodeId, ticks: float) -> None:
        """Remember how long an answer of `node` took."""
        self._samples.setdefault(node, deque(maxlen=SAMPLES_MAX)).append(ticks)

    def forget(self, nodes: Collection[NodeId]) -> None:
        """Remember nothing of nodes that are not among these."""
        for gone in self._samples.keys() - set(nodes):
            del self._samples[gone]

    def of(self, node: NodeId) -> float:
        """Return the way to `node` and back, in ticks; none if it is not known."""
        return min(self._samples.get(node, ()), default=0.0)

    def allowed_ticks(self, own: ReplicaId, voters: Collection[ReplicaId]) -> int:
        """Return within how many ticks a majority of `voters` can answer `own`."""
        ways = sorted(0.0 if one == own else self.of(node_of(one)) for one in voters)
        return min(round(ways[len(ways) // 2]), ALLOWED_TICKS_MAX) if ways else 0
