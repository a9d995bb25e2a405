"""Schedules for clusters in several regions: one is lost and returns, is cut off, falls silent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.testing.history import Result
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.following import FollowingLeaders
from angarium.testing.sim.script import (
    GROUP,
    isolate,
    leader,
    leads,
    let_pass,
    schedule,
    shuffled,
    strike,
    until,
)
from angarium.testing.sim.settings import Settings, in_regions, with_following
from angarium.testing.sim.wan import Living, even_wan

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.sim.world import World

ONE_WAY_MS = 80

SPREAD = replace(
    in_regions(Settings(producers=3, readers=1), 0, living=Living.SPREAD),
    nodes=6,
    replicas=3,
    wan=even_wan(regions=3, one_way_ms=ONE_WAY_MS),
    beating=True,
)
"""Three regions of two nodes, a replica in each."""

HOMED = replace(
    in_regions(Settings(groups=3, producers=3, readers=1), 0, living=Living.HOMED),
    wan=even_wan(regions=3, one_way_ms=ONE_WAY_MS, living=Living.HOMED),
)
"""Three regions of three nodes; each partition at home in one, with a learner in the others."""

FOLLOWING = replace(with_following(Settings(readers=1)), nodes=3, groups=1, producers=4)
"""Three regions of one node, and leaders that follow their publishers."""

BRIEF_MS = 1_000
"""A silence that is none: a process that is paused for so long goes on as if nothing had been."""

NOTICED_WITHIN_MS = 600
"""Looks at the beats of both sides, and one way between regions."""

LEADER_WITHIN = 5 * SECOND
"""How long after the loss of its leader's region a partition that is spread may take to have
another one."""


@schedule(SPREAD)
def lost_region(world: World) -> None:
    """The region of a leader goes dark; another one leads within seconds; it comes back."""
    let_pass(world, 2_000)
    region = world.network.regions[leader(world).name]
    inside = [node for node in world.nodes.values() if node.name in world.ends_in(region)]
    for node in inside:
        node.lose_power()
    world.faults.record("region_loss", region)
    since = world.scheduler.now
    until(world, lambda: world.operator.leader(GROUP) is not None)
    taken = world.scheduler.now - since
    if taken > LEADER_WITHIN:
        world.history.incidents.append(
            f"C10: {taken / 1e6:.1f} s without a leader after a region of three was lost"
        )
    let_pass(world, 3_000)
    for node in inside:
        node.boot()
    let_pass(world, 3_000)


@schedule(HOMED)
def lost_home(world: World) -> None:
    """A region with all voters of a partition is cut off: the others go on, and it does inside."""
    let_pass(world, 2_000)
    region = world.network.regions["node-1"]
    inside = world.ends_in(region)
    world.network.cut_between(inside, world.ends() - inside)
    world.faults.record("region_cut", region)
    # Every region is heard at home: nobody needs another one to publish to its own partition.
    before = {group: _acknowledged(world, group) for group in world.groups}
    let_pass(world, 4_000)
    for group, count in before.items():
        if world.operator.leader(group) is None:
            world.history.incidents.append(
                f"C10: group {group} lost its leader with its home whole"
            )
        # Its only producer may sit on the other side of the cut.
        elif group == GROUP and _acknowledged(world, group) == count:
            world.history.incidents.append(f"C10: no ack from group {group} within its home")
    world.network.heal()
    let_pass(world, 3_000)


@schedule(SPREAD)
def mute_region(world: World) -> None:
    """A leader's region is heard by nobody and hears all; then the other way round."""
    for is_deaf in (False, True):
        let_pass(world, 2_000)
        region = world.network.regions[leader(world).name]
        inside = world.ends_in(region)
        for one in sorted(inside):
            for other in sorted(world.ends() - inside):
                world.network.cut(*((other, one) if is_deaf else (one, other)))
        world.faults.record("region_one_way", region)
        let_pass(world, 4_000)
        world.network.heal()
    let_pass(world, 2_000)


@schedule(SPREAD)
def silent_cut(world: World) -> None:
    """A leader's node is cut off without a word: all know it soon, and not too soon.

    What clients do goes on meanwhile. A cut of a second changes nothing but who leads.
    """
    let_pass(world, 3_000)
    _expect_silent(world, set(), "before the cut")
    for _ in range(2):
        node = leader(world)
        others = {one.name for one in world.nodes.values()} - {node.name}
        world.network.cut_between({node.name}, others)
        world.faults.record("silent_cut", node.name)
        let_pass(world, BRIEF_MS)
        _expect_silent(world, set(), f"after {BRIEF_MS} ms of a cut")
        assert node.beats is not None
        let_pass(world, node.beats.patience // MILLISECOND - BRIEF_MS + NOTICED_WITHIN_MS)
        _expect_silent(world, {node.id}, "during the cut")
        world.network.heal()
        let_pass(world, 2_000)
        _expect_silent(world, set(), "after the cut")


def _expect_silent(world: World, gone: set[NodeId], when: str) -> None:
    """Note an incident unless exactly these, and all others to them, count as silent."""
    for node in world.nodes.values():
        assert node.beats is not None
        expected = set(world.node_ids) - {node.id} if node.id in gone else gone
        if node.beats.silent != expected:
            found = sorted(node.beats.silent)
            world.history.incidents.append(
                f"C10: {when} {node.name} takes {found} for silent, not {sorted(expected)}"
            )


@schedule(FOLLOWING)
def followed_behind(world: World) -> None:
    """Publishers go to a region whose replica is far behind: it leads once it has caught up."""
    let_pass(world, 1_000)
    (planner,) = world.rebalancings
    assert isinstance(planner, FollowingLeaders)
    until(world, lambda: not planner.partitions()[0].target and leads(leader(world)))
    at = leader(world)
    first = planner.partitions()[0].replicas[0]
    other = next(one for one in shuffled(world) if one.id not in {first, at.id})
    strike(world, "partition", other, lambda: isolate(world, [other]))
    let_pass(world, 2_000)
    region = planner.machine.nodes.by_id[other.id].labels.region
    planner.settle_in(region)
    let_pass(world, 2_000)
    world.network.heal()
    until(world, lambda: planner.partitions()[0].replicas[0] == other.id)
    let_pass(world, 1_000)


def _acknowledged(world: World, group: int) -> int:
    publishes = world.history.publishes
    return sum(one.result is Result.OK and one.group == group for one in publishes)
