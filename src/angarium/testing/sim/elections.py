"""Schedules around elections: situations in which Raft's rules about votes and terms matter.

Chance meets them too seldom. Each is the shortest way to one of them, and harmless as long as the
rule holds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from angarium.testing.sim.script import (
    GROUP,
    THREE,
    isolate,
    leader,
    leads,
    let_pass,
    replica_on,
    schedule,
    strike,
    until,
)
from angarium.testing.sim.world import START, small_host

if TYPE_CHECKING:
    from angarium.replica.host import HostConfig
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World


def _one_by_one() -> HostConfig:
    """Return settings under which an append carries one entry only."""
    return replace(small_host(), replica=replace(small_host().replica, message_bytes_max=100))


@schedule()
def forgetful_voter(world: World) -> None:
    """Two candidates that do not see each other ask the same voter, which restarts in between."""
    let_pass(world, 400)
    first = leader(world)
    second, voter = (node for node in world.nodes.values() if node is not first)
    world.network.cut_between({first.name}, {second.name})
    strike(world, "crash", first, first.crash)
    first.boot()
    until(world, lambda: any(map(leads, world.nodes.values())))
    elected = next(filter(leads, world.nodes.values()))
    # The voter does not hear from whom it has elected, so another may ask in the same term.
    # (If it was elected itself, this is just another crash.)
    isolate(world, [elected])
    strike(world, "crash", voter, voter.crash)
    voter.boot()
    let_pass(world, 1_000)
    world.network.heal()
    let_pass(world, 500)


@schedule()
def late_loser(world: World) -> None:
    """A leader with a tail that nobody else has is away while two others are elected."""
    let_pass(world, 400)
    loser = leader(world)
    strike(world, "partition", loser, lambda: _isolate_with_clients(world, [loser]))
    until(world, lambda: _tail(loser) >= 5 or not leads(loser))
    world.quiet_until = world.scheduler.now + 60_000_000
    others = [node for node in world.nodes.values() if node is not loser]
    second = _next_leader(world, others)
    (third,) = (node for node in others if node is not second)
    world.operator.transfer(GROUP, third.id)
    until(world, lambda: replica_on(third).may_serve)
    world.network.heal()
    world.quiet_until = START
    let_pass(world, 1_000)


@schedule(replace(THREE, readers=12))
def slow_handover(world: World) -> None:
    """Leadership is handed over again and again on slow disks, while readers ask for the end.

    A new leader takes long to commit its first entry; until then it must not say where the log
    ends, because its predecessor may have committed more than it knows of.
    """
    let_pass(world, 400)
    for node in world.nodes.values():
        strike(world, "slow_disk", node, partial(setattr, node, "slow_syncs", True))
    for _ in range(8):
        before = leader(world)
        after = world.faults.rng.choice([one for one in world.nodes.values() if one is not before])
        strike(world, "transfer", after, partial(world.operator.transfer, GROUP, after.id))
        let_pass(world, 600)


@schedule(replace(THREE, nodes=5, replicas=5, host=_one_by_one()))
def figure_8(world: World) -> None:
    """Figure 8 of the Raft paper: an entry of an old term, on a majority, is not committed yet."""
    let_pass(world, 400)
    # (a) The leader's tail reaches one other node only.
    one = leader(world)
    two = next(node for node in world.nodes.values() if node is not one)
    strike(world, "partition", one, lambda: _isolate_with_clients(world, [one, two]))
    begins = replica_on(one).last_index
    until(world, lambda: replica_on(two).last_index >= begins + 3)
    world.quiet_until = world.scheduler.now + 60_000_000
    # (b) Both are gone; another is elected, and is gone before anybody has its first entry.
    for node in (one, two):
        strike(world, "crash", node, node.crash)
    world.network.heal()
    others = [node for node in world.nodes.values() if node not in (one, two)]
    until(world, lambda: any(map(leads, others)))
    five = next(filter(leads, others))
    isolate(world, [five])
    let_pass(world, 10)
    strike(world, "crash", five, five.crash)
    world.network.heal()
    # (c) The first two come back. One of them leads, and copies its old tail to the others.
    one.boot()
    two.boot()
    known = max(replica_on(node).raft.commit for node in (one, two))
    until(world, lambda: any(replica_on(node).raft.commit > known for node in (one, two)))
    # (d) Both are gone again, and the one that was elected in between is back.
    isolate(world, [one, two])
    for node in (one, two):
        strike(world, "crash", node, node.crash)
    five.boot()
    let_pass(world, 1_000)
    world.network.heal()
    one.boot()
    two.boot()
    world.quiet_until = START
    let_pass(world, 500)


def _isolate_with_clients(world: World, nodes: list[SimNode]) -> None:
    isolate(world, nodes, clients=world.client_names())


def _tail(node: SimNode) -> int:
    """Return how many entries of a leader are not committed."""
    raft = replica_on(node).raft
    return raft.last_index - raft.commit


def _next_leader(world: World, nodes: list[SimNode]) -> SimNode:
    until(world, lambda: any(replica_on(node).may_serve for node in nodes))
    return next(node for node in nodes if replica_on(node).may_serve)
