"""What scripted schedules are made of: let time pass, wait for a situation, strike.

Unlike the random faults a schedule follows a script; the seed only decides the small things:
delays, which node is which, what the clients send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.ids import RaftGroupId
from angarium.testing.sim.clock import MILLISECOND, SECOND, START
from angarium.testing.sim.settings import Settings
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.ids import NodeId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import Report

GROUP: Final = RaftGroupId(1)
"""The only group of a schedule."""

THREE: Final = Settings(nodes=3, replicas=3, groups=1, producers=4, readers=2)
TIME_MAX: Final = 60 * SECOND
"""A schedule that takes longer does not do what its script says."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A script, and the size of the cluster that it is for."""

    script: Callable[[World], None]
    settings: Settings

    def __call__(self, seed: int) -> Report:
        """Run it; what happens beside the script is up to the seed."""
        return World(seed, self.settings).run(self.script)


def schedule(settings: Settings = THREE) -> Callable[[Callable[[World], None]], Schedule]:
    """Make a schedule of a script, which begins with a cluster at work."""
    return lambda script: Schedule(script, settings)


def shuffled(world: World) -> list[SimNode]:
    """Return the nodes in an order that the seed decides."""
    nodes = list(world.nodes.values())
    world.faults.rng.shuffle(nodes)
    return nodes


def let_pass(world: World, milliseconds: int) -> None:
    """Let everything happen that happens in so many milliseconds."""
    world.scheduler.run_until(world.scheduler.now + milliseconds * MILLISECOND)
    assert world.scheduler.now - START < TIME_MAX


def until(world: World, done: Callable[[], bool]) -> None:
    """Let time pass until `done`, looked at after every event."""
    if not done():
        world.scheduler.run_until(START + TIME_MAX, stop=done)
    assert done(), "the schedule's situation did not come about within a minute"


def strike(world: World, kind: str, node: SimNode, fault: Callable[[], None]) -> None:
    """Make something go wrong, and write it down."""
    fault()
    world.faults.record(kind, node.name)


def leader(world: World) -> SimNode:
    """Return the node that leads and serves, as soon as one does."""
    until(world, lambda: world.operator.leader(GROUP) is not None)
    replica = world.operator.leader(GROUP)
    assert replica is not None
    return world.node_of(replica.id)


def replica_on(node: SimNode) -> PartitionReplica:
    """Return the replica on a node that is up."""
    assert node.host is not None
    return node.host.replicas[GROUP]


def leads(node: SimNode) -> bool:
    """Tell whether a node believes to lead, serving or not."""
    host = node.host
    return host is not None and GROUP in host.replicas and host.replicas[GROUP].raft.is_leader


def isolate(world: World, nodes: Iterable[SimNode], *, clients: Iterable[str] = ()) -> None:
    """Cut some nodes off from all others, and from all clients but these."""
    inside = {node.name for node in nodes}
    names = {*(node.name for node in world.nodes.values()), *world.client_names()}
    world.network.cut_between(inside, names - inside - set(clients))


def spare_takes_over(world: World) -> NodeId:
    """Ask that the one node without a replica takes the place of one that does not lead."""
    wanted = world.operator.wanted[GROUP]
    (spare,) = set(world.nodes) - wanted
    wanted.remove(min(wanted - {leader(world).id}))
    wanted.add(spare)
    return spare
