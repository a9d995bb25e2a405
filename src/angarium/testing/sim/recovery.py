"""After the storm: everything is healed, and the cluster has to recover (C10).

Within 5 s of healing every group acknowledges a CONSISTENT publish; members that fail no more bring
their groups to the end; and every replica comes to hold the same log. What does not come about is
an incident of the history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.log.memory_disk import ROOMY
from angarium.modes import DeliveryMode
from angarium.testing.history import Result
from angarium.testing.sim.clients import Producer
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.network import Weather

if TYPE_CHECKING:
    from angarium.testing.history import Publish
    from angarium.testing.sim.world import World


def recover(world: World) -> None:
    """Heal everything and wait for what must come; the first thing that does not is the last."""
    heal(world)
    for expect in (_acknowledgements, _groups_to_finish, _convergence):
        if not world.is_broken:
            expect(world)


def heal(world: World) -> None:
    """End every fault and stop making new ones; clients stop asking for more."""
    world.faults.active = False
    for client in world.clients:
        client.active = False
    world.network.heal()
    world.network.weather = Weather()
    for clock in world.wall_clocks.values():
        clock.set_right()
    for node in world.nodes.values():
        node.slow_syncs = False
        node.disk.capacity_bytes = ROOMY
        node.disk.fail_syncs(0)
        if node.is_paused:
            node.resume()
        if not node.is_up:
            node.boot()
    world.note("world", "is healed")


def _acknowledgements(world: World) -> None:
    """Within 5 s of healing every group acknowledges a CONSISTENT publish."""
    probes: list[Publish] = []
    for number, group in enumerate(world.groups):
        prober = Producer(
            world,
            1_000 + number,
            group,
            world.seed + number,
            window=1,
            eager=True,
            gives_up=0.0,
        )
        world.let_in(prober)
        probes.append(prober.publish_one(DeliveryMode.CONSISTENT))

    def answered() -> bool:
        return all(probe.result is Result.OK for probe in probes)

    world.wait(5 * SECOND, answered)
    if world.is_broken:
        return
    for probe in probes:
        if probe.result is not Result.OK:
            world.history.incidents.append(
                f"C10: group {probe.group} gave no CONSISTENT ack within 5 s of healing"
            )


def _groups_to_finish(world: World) -> None:
    """Members that only work, and fail no more, bring every group to its end.

    However long the way is: a member that takes one record at a time needs minutes for what an
    operator's seek brought back. Standing still is what must not happen.
    """
    if not world.settings.members:
        return
    consumers, before = world.consumers, None
    while not (world.is_broken or consumers.are_done()) and consumers.floors() != before:
        before = consumers.floors()
        world.wait(40 * SECOND, consumers.are_done)
    consumers.read_final()


def _convergence(world: World) -> None:
    """Every replica ends with the same log, and everybody's operations with an answer."""

    def settled() -> bool:
        return not world.operations_in_flight() and all(
            world.operator.is_settled(group) and world.is_agreed(group) for group in world.groups
        )

    world.wait(20 * SECOND, settled)
    if world.is_broken:
        return
    for group in world.groups:
        if not (world.operator.is_settled(group) and world.is_agreed(group)):
            world.history.incidents.append(
                f"C10: group {group} did not settle within 20 s of healing"
            )
    if world.operations_in_flight():
        world.history.incidents.append(
            f"C10: {world.operations_in_flight()} operations have no answer 20 s after healing"
        )
