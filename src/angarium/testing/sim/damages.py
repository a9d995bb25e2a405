"""Schedules with damaged disks, where somebody must notice and somebody must help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.testing.sim.script import (
    GROUP,
    THREE,
    TIME_MAX,
    leader,
    let_pass,
    replica_on,
    schedule,
    spare_takes_over,
    strike,
    until,
)
from angarium.testing.sim.world import START

if TYPE_CHECKING:
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World


@schedule(replace(THREE, nodes=4, readers=0))
def damaged_leader(world: World) -> None:
    """A replica moves to a node that copies everything from a leader with a damaged segment."""
    until(world, lambda: _leader_has_sealed_segments(world))
    source = leader(world)
    _damage(world, source)
    spare_takes_over(world)
    let_pass(world, 1_500)


@schedule(replace(THREE, readers=0))
def damaged_at_rest(world: World) -> None:
    """A reader meets a damaged segment in a group that went to rest; peers are asked all the same.

    Nobody ticks a group at rest, so nothing that waits for ticks happens by itself.
    """
    until(world, lambda: _leader_has_sealed_segments(world))
    world.quiet_until = START + TIME_MAX
    until(world, lambda: all(node.host and node.host.resting for node in world.nodes.values()))
    node = world.faults.rng.choice(list(world.nodes.values()))
    _damage(world, node)
    log = replica_on(node).partition.log
    for segment in list(log.segments):
        log.verify_segment(segment.base_offset)
    let_pass(world, 2_000)
    if replica_on(node).is_mending:
        world.history.incidents.append("C10: damage was not mended within 2 s in a group at rest")


def _leader_has_sealed_segments(world: World) -> bool:
    leading = world.operator.leader(GROUP)
    return leading is not None and len(_segments(world.node_of(leading.id))) > 2


def _segments(node: SimNode) -> list[str]:
    return [name for name in node.disk.names() if name.endswith(".seg")]


def _damage(world: World, node: SimNode) -> None:
    """Flip a bit in a segment that takes no more appends."""
    name = world.faults.rng.choice(_segments(node)[:-1])
    position = world.faults.rng.randrange(node.disk.length_of(name))
    strike(world, "bit_flip", node, lambda: node.disk.flip_bit(name, position))
