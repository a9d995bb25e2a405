"""Schedules around changes of membership: the network is cut where old and new voters differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.script import (
    GROUP,
    THREE,
    leader,
    let_pass,
    schedule,
    spare_takes_over,
    strike,
    until,
)
from angarium.testing.sim.settings import PACED_BYTES

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.sim.world import World

OUTRUN = replace(
    THREE,
    nodes=4,
    producers=2,
    readers=1,
    copy_bytes_per_tick=PACED_BYTES // 2,
    host=replace(THREE.host, wal=replace(THREE.host.wal, files_max=4)),
)
"""Copies at a pace far below what producers write, of logs that are kept for hardly anybody."""


@schedule(replace(THREE, nodes=4))
def split_change(world: World) -> None:
    """The moment a joint change is in force, its leader and the newcomer are cut off together."""
    let_pass(world, 500)
    newcomer = spare_takes_over(world)
    until(world, lambda: _is_joint(world))
    _split(world, newcomer)


@schedule(replace(THREE, nodes=4))
def lonely_learner(world: World) -> None:
    """A leader is left alone with a learner that has everything, and with no other voter."""
    let_pass(world, 500)
    newcomer = spare_takes_over(world)
    until(world, lambda: _listens(world, newcomer))
    _split(world, newcomer)


@schedule(OUTRUN)
def outrun_newcomer(world: World) -> None:
    """A newcomer whose copies are slower than what is written takes its place all the same."""
    let_pass(world, 500)
    spare_takes_over(world)
    world.wait(10 * SECOND, lambda: world.operator.is_settled(GROUP))
    if not world.operator.is_settled(GROUP):
        world.history.incidents.append("C10: a newcomer was outrun for 10 s")


def _split(world: World, newcomer: NodeId) -> None:
    """Cut the leader and the newcomer off together, each side with half of the clients."""
    leading = leader(world)
    together = {leading.name, world.nodes[newcomer].name}
    others = {node.name for node in world.nodes.values()} - together
    for number, client in enumerate(world.client_names()):
        (together if number % 2 else others).add(client)
    strike(world, "partition", leading, lambda: world.network.cut_between(together, others))
    let_pass(world, 2_000)
    world.network.heal()
    let_pass(world, 500)


def _is_joint(world: World) -> bool:
    leading = world.operator.leader(GROUP)
    return leading is not None and bool(leading.raft.conf_state.voters_outgoing)


def _listens(world: World, newcomer: NodeId) -> bool:
    """Tell whether the newcomer is a learner with nearly the whole log."""
    leading = world.operator.leader(GROUP)
    learner = world.nodes[newcomer].replica_in(GROUP)
    if leading is None or learner not in leading.raft.conf_state.learners:
        return False
    match = leading.raft.match(learner)
    return match is not None and 0 < leading.raft.last_index - 5 <= match
