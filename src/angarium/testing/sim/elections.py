"""Schedules around elections: situations in which Raft's rules about votes and terms matter.

Chance meets them too seldom. Each is the shortest way to one of them, and harmless as long as the
rule holds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from angarium.testing.sim.clock import START
from angarium.testing.sim.script import (
    GROUP,
    THREE,
    TIME_MAX,
    isolate,
    leader,
    leads,
    let_pass,
    replica_on,
    schedule,
    strike,
    until,
)
from angarium.testing.sim.settings import small_host

if TYPE_CHECKING:
    from angarium.replica.config import HostConfig
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
    world.quiet_until = world.scheduler.now + TIME_MAX
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


@schedule()
def deaf_leader(world: World) -> None:
    """A leader is heard by all and hears nobody: what it gives up on is committed by the next."""
    for _ in range(3):
        let_pass(world, 400)
        deaf = leader(world)
        for node in world.nodes.values():
            if node is not deaf:
                world.network.cut(node.name, deaf.name)
        strike(world, "one_way_cut", deaf, partial(let_pass, world, 700))
        world.network.heal()


@schedule(replace(THREE, nodes=5, replicas=5, host=_one_by_one()))
def figure_8(world: World) -> None:
    """Figure 8 of the Raft paper: an entry of an old term, on a majority, is not committed yet."""
    (one, two), five, _ = _until_figure_8b(world)
    # (c) The first two come back. One of them leads, and copies its old tail to the others.
    one.boot()
    two.boot()
    known = max(replica_on(node).raft.commit for node in (one, two))
    until(world, lambda: any(replica_on(node).raft.commit > known for node in (one, two)))
    # (d) Both are gone again, and the one that was elected in between is back.
    _swap(world, out=[one, two], back=five)
    let_pass(world, 1_000)
    _back_to_work(world, [one, two])


@schedule(replace(THREE, nodes=5, replicas=5, host=_one_by_one()))
def truncated_vote(world: World) -> None:
    """Voters give up a tail that is not committed, for whom they voted for, and restart at once."""
    (one, two), five, others = _until_figure_8b(world)
    one.boot()
    two.boot()
    # As in figure 8, but the old tail reaches the others only in part.
    lengths = {node.id: replica_on(node).last_index for node in others}
    until(world, lambda: all(replica_on(one).last_index > lengths[one.id] for one in others))
    _swap(world, out=[one, two], back=five)
    until(world, lambda: any(map(leads, (five, *others))))
    term = replica_on(five).raft.term
    until(world, lambda: any(_last_term(node) == term for node in others))
    for node in others:
        strike(world, "crash", node, node.crash)
        node.boot()
    let_pass(world, 1_000)
    _back_to_work(world, [one, two])


def _until_figure_8b(world: World) -> tuple[list[SimNode], SimNode, list[SimNode]]:
    """Return who has a tail nobody else has, who was elected without it, and the others.

    All of the first three are down.
    """
    let_pass(world, 400)
    # (a) The leader's tail reaches one other node only.
    one = leader(world)
    two = next(node for node in world.nodes.values() if node is not one)
    strike(world, "partition", one, lambda: _isolate_with_clients(world, [one, two]))
    begins = replica_on(one).last_index
    until(world, lambda: replica_on(two).last_index >= begins + 3)
    world.quiet_until = world.scheduler.now + TIME_MAX
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
    others.remove(five)
    return [one, two], five, others


def _swap(world: World, *, out: list[SimNode], back: SimNode) -> None:
    """Let some nodes crash with all that they have sent, and another one come back."""
    isolate(world, out)
    for node in out:
        strike(world, "crash", node, node.crash)
    back.boot()


def _back_to_work(world: World, nodes: list[SimNode]) -> None:
    world.network.heal()
    for node in nodes:
        node.boot()
    world.quiet_until = START
    let_pass(world, 500)


def _last_term(node: SimNode) -> int:
    """Return the term of the last entry that a node has handed to its disk."""
    assert node.host is not None
    log = node.host.wal.log(GROUP)
    return log.term(log.last_index())


def _isolate_with_clients(world: World, nodes: list[SimNode]) -> None:
    isolate(world, nodes, clients=world.client_names())


def _tail(node: SimNode) -> int:
    """Return how many entries of a leader are not committed."""
    raft = replica_on(node).raft
    return raft.last_index - raft.commit


def _next_leader(world: World, nodes: list[SimNode]) -> SimNode:
    until(world, lambda: any(replica_on(node).may_serve for node in nodes))
    return next(node for node in nodes if replica_on(node).may_serve)
