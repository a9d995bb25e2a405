"""Schedules with a name: the two that broke a peer, the promise of progress, rare situations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.testing.history import Result
from angarium.testing.sim import (
    damages,
    elections,
    majorities,
    memberships,
    regional,
    replacements,
    successions,
    twins,
    witnessed,
)
from angarium.testing.sim.script import isolate, let_pass, schedule, shuffled, strike

if TYPE_CHECKING:
    from angarium.testing.sim.script import Schedule
    from angarium.testing.sim.world import World


@schedule()
def pause_kill(world: World) -> None:
    """Pause A while writing, power-fail B, pause C and resume A, restart B, write, resume all."""
    a, b, c = shuffled(world)
    let_pass(world, 500)
    strike(world, "pause", a, a.pause)
    let_pass(world, 500)
    strike(world, "power_loss", b, b.lose_power)
    strike(world, "pause", c, c.pause)
    a.resume()
    b.boot()
    let_pass(world, 1_500)
    c.resume()
    let_pass(world, 1_000)


@schedule()
def part_kill(world: World) -> None:
    """The same with partitions instead of pauses; clients reach everybody."""
    a, b, c = shuffled(world)
    let_pass(world, 500)
    strike(world, "partition", a, lambda: isolate(world, [a], clients=world.client_names()))
    let_pass(world, 500)
    strike(world, "power_loss", b, b.lose_power)
    world.network.heal()
    strike(world, "partition", c, lambda: isolate(world, [c], clients=world.client_names()))
    b.boot()
    let_pass(world, 1_500)
    world.network.heal()
    let_pass(world, 1_000)


@schedule()
def minority_down(world: World) -> None:
    """One of three nodes stays down for ten seconds; the others go on (C10, second half)."""
    a = shuffled(world)[0]
    let_pass(world, 500)
    strike(world, "crash", a, a.crash)
    # Whoever led may have been the one: leave time for an election, then count each second.
    let_pass(world, 2_000)
    for second in range(8):
        before = _acknowledged(world)
        let_pass(world, 1_000)
        if _acknowledged(world) == before:
            world.history.incidents.append(
                f"C10: no CONSISTENT ack in second {second} with one of three nodes down"
            )


SCENARIOS: Final[dict[str, Schedule]] = {
    "pause-kill": pause_kill,
    "part-kill": part_kill,
    "minority-down": minority_down,
    "forgetful-voter": elections.forgetful_voter,
    "late-loser": elections.late_loser,
    "slow-handover": elections.slow_handover,
    "deaf-leader": elections.deaf_leader,
    "figure-8": elections.figure_8,
    "truncated-vote": elections.truncated_vote,
    "split-change": memberships.split_change,
    "lonely-learner": memberships.lonely_learner,
    "outrun-newcomer": memberships.outrun_newcomer,
    "slow-leader": damages.slow_leader,
    "lying-disk": damages.lying_disk,
    "interrupted-snapshot": damages.interrupted_snapshot,
    "quick-wipe": damages.quick_wipe,
    "damaged-leader": damages.damaged_leader,
    "damaged-follower": damages.damaged_follower,
    "damaged-at-rest": damages.damaged_at_rest,
    "holes-in-two-logs": damages.holes_in_two_logs,
    "hole-before-a-follower": damages.hole_before_a_follower,
    "lost-replica": damages.lost_replica,
    "replaced-one-by-one": replacements.replaced_one_by_one,
    "replaced-when-allowed": replacements.replaced_when_allowed,
    "rolled-back": replacements.rolled_back,
    "rolled-back-at-once": replacements.rolled_back_at_once,
    "contradicted": replacements.contradicted,
    "served-twice": twins.served_twice,
    "lost-majority": majorities.lost_majority,
    "lost-catalog": successions.lost_catalog,
    "lost-region": regional.lost_region,
    "lost-home": regional.lost_home,
    "mute-region": regional.mute_region,
    "silent-cut": regional.silent_cut,
    "followed-behind": regional.followed_behind,
    "tie-broken": witnessed.tie_broken,
    "witness-moved": witnessed.witness_moved,
    "newcomer-behind": witnessed.newcomer_behind,
    "witness-replaced": witnessed.witness_replaced,
    "witness-damaged": witnessed.witness_damaged,
    "witness-behind": witnessed.witness_behind,
}


def _acknowledged(world: World) -> int:
    return sum(one.result is Result.OK for one in world.history.publishes)
