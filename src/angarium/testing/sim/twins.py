"""A schedule in which every node is started a second time on the disk that it works with.

Somebody types the command twice, or two supervisors look after one machine. The second process is
refused, so nothing comes of it. If it were not, both would write one log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.testing.sim.node import SimNode
from angarium.testing.sim.script import let_pass, schedule, shuffled, strike

if TYPE_CHECKING:
    from angarium.testing.sim.world import World


@schedule()
def served_twice(world: World) -> None:
    """Each node is started twice, at work or just before its end; then all are restarted."""
    let_pass(world, 500)
    twins = []
    for node in shuffled(world):
        twin = _twin_of(world, node)
        strike(world, "second process", node, twin.boot)
        twins.append(twin)
        let_pass(world, world.faults.rng.choice((20, 300)))
    let_pass(world, 500)
    for process in (*twins, *world.nodes.values()):
        if process.is_up:
            process.crash()
    for node in world.nodes.values():
        node.boot()
    let_pass(world, 500)


def _twin_of(world: World, node: SimNode) -> SimNode:
    """Return another process of the same node, which finds everything that one has on disk."""
    twin = SimNode(world, node.id, world.faults.rng.getrandbits(64))
    twin.disk = node.disk
    twin.incarnation = node.incarnation
    twin.saved_ends = dict(node.saved_ends)
    # Whoever speaks to the node reaches both: they have one name, and one address is the other's.
    world.let_both_hear(node, twin)
    return twin
