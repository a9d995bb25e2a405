"""How long a plan takes: 100 nodes and 10,000 partitions, in three situations.

    python -m benchmarks.balance

Every line is the least processor time of a few runs, with the moves that were planned.
"""

from __future__ import annotations

import random
import time

from angarium.ids import Incarnation, NodeId, RaftGroupId
from angarium.machine.catalog import Labels
from angarium.machine.catalog.values import Node
from angarium.node.balance import LocatedPartition, planned

NODES = 100
PARTITIONS = 10_000
RUNS = 3


def nodes_of(count: int) -> list[Node]:
    """Return nodes in three zones."""
    return [
        Node(NodeId(at + 1), Incarnation(at + 1), (), Labels("eu", "abc"[at % 3]), 1, 5)
        for at in range(count)
    ]


def partitions_on(count: int) -> list[LocatedPartition]:
    """Return partitions, one replica in each zone, spread evenly over the first `count` nodes."""
    dice = random.Random(1)
    zones = [[NodeId(at + 1) for at in range(count) if at % 3 == zone] for zone in range(3)]
    decks: list[list[NodeId]] = [[] for _ in zones]
    leads = dict.fromkeys((node for zone in zones for node in zone), 0)
    found = []
    for at in range(PARTITIONS):
        for deck, zone in zip(decks, zones, strict=True):
            if not deck:  # dealt out: everybody has had its turn
                deck.extend(dice.sample(zone, len(zone)))
        replicas = sorted((deck.pop() for deck in decks), key=lambda one: leads[one])
        leads[replicas[0]] += 1
        size = dice.randrange(1_000) << 20
        found.append(LocatedPartition(RaftGroupId(at + 1), tuple(replicas), size))
    return found


def main() -> None:
    """Print how long each plan takes."""
    cases = {"balanced": NODES, "one node joined": NODES - 1, "half of them joined": NODES // 2}
    nodes = nodes_of(NODES)
    for name, before in cases.items():
        partitions = partitions_on(before)
        best, moves = float("inf"), 0
        for _ in range(RUNS):
            began = time.process_time()
            moves = len(planned(nodes, partitions))
            best = min(best, time.process_time() - began)
        print(f"{name:22} {best:6.3f} s  {moves:6,} moves")


if __name__ == "__main__":
    main()
