"""Schedules with a name: the two that broke a peer, the promise of progress, and rare situations.

Unlike the random faults these follow a script; the seed only decides the small things: delays,
which node is which, what the clients send.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from angarium.ids import GroupId
from angarium.testing.history import Result
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.world import START, Report, Settings, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.testing.sim.node import SimNode

GROUP = GroupId(1)
_THREE = Settings(nodes=3, replicas=3, groups=1, producers=4, readers=2)


def pause_kill(seed: int) -> Report:
    """Pause A while writing, power-fail B, pause C and resume A, restart B, write, resume all."""
    world, (a, b, c) = _started(seed)
    _pass(world, 500)
    _struck(world, "pause", a, a.pause)
    _pass(world, 500)
    _struck(world, "power_loss", b, b.lose_power)
    _struck(world, "pause", c, c.pause)
    a.resume()
    b.boot()
    _pass(world, 1_500)
    c.resume()
    _pass(world, 1_000)
    world.conclude()
    return world.report()


def part_kill(seed: int) -> Report:
    """The same with partitions instead of pauses."""
    world, (a, b, c) = _started(seed)
    _pass(world, 500)
    _struck(world, "partition", a, lambda: _isolate(world, a))
    _pass(world, 500)
    _struck(world, "power_loss", b, b.lose_power)
    world.network.heal()
    _struck(world, "partition", c, lambda: _isolate(world, c))
    b.boot()
    _pass(world, 1_500)
    world.network.heal()
    _pass(world, 1_000)
    world.conclude()
    return world.report()


def minority_down(seed: int) -> Report:
    """One of three nodes stays down for ten seconds; the others go on (C10, second half)."""
    world, (a, _, _) = _started(seed)
    _pass(world, 500)
    _struck(world, "crash", a, a.crash)
    # Whoever led may have been the one: leave time for an election, then count each second.
    _pass(world, 2_000)
    for second in range(8):
        before = _acknowledged(world)
        _pass(world, 1_000)
        if _acknowledged(world) == before:
            world.history.incidents.append(
                f"C10: no CONSISTENT ack in second {second} with one of three nodes down"
            )
    world.conclude()
    return world.report()


def damaged_leader(seed: int) -> Report:
    """A replica moves to a node that copies everything from a leader with a damaged segment."""
    world = World(seed, replace(_THREE, nodes=4, readers=0))
    world.form()
    _until(world, lambda: len(_sealed(world)) >= 2)
    leader = _leader(world)
    name = world.faults.rng.choice(_sealed(world))
    position = world.faults.rng.randrange(leader.disk.length_of(name))
    _struck(world, "bit_flip", leader, lambda: leader.disk.flip_bit(name, position))
    wanted = world.operator.wanted[GROUP]
    (spare,) = set(world.nodes) - wanted
    wanted.remove(min(wanted - {leader.id}))
    wanted.add(spare)
    _pass(world, 1_500)
    world.conclude()
    return world.report()


def damaged_at_rest(seed: int) -> Report:
    """A reader meets a damaged segment in a group that went to rest; peers are asked all the same.

    Nobody ticks a group at rest, so nothing that waits for ticks happens by itself.
    """
    world = World(seed, replace(_THREE, readers=0))
    world.form()
    _until(world, lambda: len(_sealed(world)) >= 2)
    world.quiet_until = START + 60 * SECOND
    _until(world, lambda: all(node.host and node.host.resting for node in world.nodes.values()))
    node = world.faults.rng.choice(list(world.nodes.values()))
    assert node.host is not None
    replica = node.host.replicas[GROUP]
    name = next(name for name in node.disk.names() if name.endswith(".seg"))
    position = world.faults.rng.randrange(node.disk.length_of(name))
    _struck(world, "bit_flip", node, lambda: node.disk.flip_bit(name, position))
    replica.partition.log.verify_segment(replica.partition.log.start_offset)
    _pass(world, 2_000)
    if replica.is_mending:
        world.history.incidents.append("C10: damage was not mended within 2 s in a group at rest")
    world.conclude()
    return world.report()


def split_change(seed: int) -> Report:
    """The moment a joint change is in force, its leader and the newcomer are cut off together."""
    world = World(seed, replace(_THREE, nodes=4))
    world.form()
    _pass(world, 500)
    wanted = world.operator.wanted[GROUP]
    (spare,) = set(world.nodes) - wanted
    leader = _leader(world)
    wanted.remove(min(wanted - {leader.id}))
    wanted.add(spare)
    _until(world, lambda: _is_joint(world))
    together = {_leader(world).name, world.nodes[spare].name}
    others = {node.name for node in world.nodes.values()} - together
    # Each client can reach one of the sides only, so that both are asked.
    for number, client in enumerate(world.client_names()):
        (together if number % 2 else others).add(client)
    _struck(world, "partition", leader, lambda: world.network.cut_between(together, others))
    _pass(world, 2_000)
    world.network.heal()
    _pass(world, 500)
    world.conclude()
    return world.report()


SCENARIOS: Final[dict[str, Callable[[int], Report]]] = {
    "pause-kill": pause_kill,
    "part-kill": part_kill,
    "minority-down": minority_down,
    "damaged-leader": damaged_leader,
    "damaged-at-rest": damaged_at_rest,
    "split-change": split_change,
}


def _leader(world: World) -> SimNode:
    """Return the node that leads, as soon as one does."""
    _until(world, lambda: world.operator.leader(GROUP) is not None)
    leader = world.operator.leader(GROUP)
    assert leader is not None
    return world.node_of(leader.id)


def _is_joint(world: World) -> bool:
    leader = world.operator.leader(GROUP)
    return leader is not None and bool(leader.raft.conf_state.voters_outgoing)


def _sealed(world: World) -> list[str]:
    """Return the segments of the leader, if there is one, that take no more appends."""
    leader = world.operator.leader(GROUP)
    names = [] if leader is None else world.node_of(leader.id).disk.names()
    return [name for name in names if name.endswith(".seg")][:-1]


def _until(world: World, done: Callable[[], bool]) -> None:
    if not done():
        world.scheduler.run_until(START + 60 * SECOND, stop=done)
    assert done(), "the schedule's situation did not come about within a minute"


def _started(seed: int) -> tuple[World, list[SimNode]]:
    world = World(seed, _THREE)
    world.form()
    nodes = list(world.nodes.values())
    world.faults.rng.shuffle(nodes)
    return world, nodes


def _pass(world: World, milliseconds: int) -> None:
    world.scheduler.run_until(world.scheduler.now + milliseconds * MILLISECOND)
    assert world.scheduler.now - START < 60 * SECOND


def _struck(world: World, kind: str, node: SimNode, fault: Callable[[], None]) -> None:
    fault()
    world.faults.record(kind, node.name)


def _isolate(world: World, node: SimNode) -> None:
    others = {other.name for other in world.nodes.values() if other is not node}
    world.network.cut_between({node.name}, others)


def _acknowledged(world: World) -> int:
    return sum(one.result is Result.OK for one in world.history.publishes)
