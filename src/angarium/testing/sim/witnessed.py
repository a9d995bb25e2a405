"""Schedules with a witness, in which it alone has what one of two full replicas lacks.

A disk that is lost here is lost for good: what was acknowledged has to be with the other full
replica and the witness, whichever of them has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.testing.history import Result
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.damages import damage_snapshot
from angarium.testing.sim.replacements import replaced_when_allowed
from angarium.testing.sim.script import (
    GROUP,
    THREE,
    isolate,
    leader,
    let_pass,
    replica_on,
    schedule,
    strike,
    until,
)

if TYPE_CHECKING:
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

TAKEN_OVER_MS = 3_000
"""How long it may take from the loss of a leader until the next acknowledgement: timeouts of both
others, an election of the witness, its handover, another election, and a publish."""

WITNESSED = replace(THREE, nodes=2, replicas=2, witnesses=1)
"""Two full replicas and a witness."""


@schedule(WITNESSED)
def tie_broken(world: World) -> None:
    """One full replica falls behind, then the other is lost, with its disk or without.

    The witness has what the first lacks. It is elected, brings that one up to date and hands over.
    """
    rng = world.faults.rng
    let_pass(world, 500)
    for _ in range(3):
        leading, other = _both(world)
        strike(world, "partition", other, lambda: isolate(world, [other]))  # noqa: B023 - called now
        let_pass(world, rng.choice((50, 400, 1_500)))
        if rng.random() < 0.5:
            strike(world, "wipe", leading, leading.wipe)
        else:
            strike(world, "power_loss", leading, leading.lose_power)
        world.network.heal()
        _expect_acknowledgement(world, "with a witness and a replica that was behind")
        leading.boot()
        let_pass(world, rng.choice((50, 600)))


@schedule(replace(WITNESSED, witnesses=2))
def witness_moved(world: World) -> None:
    """The witness is to move while one full replica is behind; then the other one is lost."""
    rng = world.faults.rng
    let_pass(world, 500)
    for _ in range(2):
        leading, other = _both(world)
        strike(world, "partition", other, lambda: isolate(world, [other]))  # noqa: B023 - called now
        let_pass(world, rng.choice((300, 1_500)))
        operator = world.operator
        operator.witness[GROUP] = next(
            one for one in world.witness_ids if one != operator.witness[GROUP]
        )
        let_pass(world, rng.choice((300, 2_000)))
        strike(world, "wipe", leading, leading.wipe)
        world.network.heal()
        _expect_acknowledgement(world, "after its witness was to move")
        leading.boot()
        let_pass(world, 300)


@schedule(replace(WITNESSED, nodes=3, witnesses=1))
def newcomer_behind(world: World) -> None:
    """A third takes the place of a full replica, and is cut off for moments on its way."""
    rng = world.faults.rng
    let_pass(world, 500)
    for _ in range(3):
        leading, other = _both(world)
        wanted = world.operator.wanted[GROUP]
        (spare,) = set(world.node_ids) - wanted
        wanted.remove(other.id)
        wanted.add(spare)
        newcomer = world.nodes[spare]
        for _ in range(rng.randrange(2, 8)):
            let_pass(world, rng.choice((30, 120, 250)))
            strike(world, "partition", newcomer, lambda: isolate(world, [newcomer]))  # noqa: B023
            let_pass(world, rng.choice((60, 150, 300)))
            world.network.heal()
        voters = {leading.id, spare, world.operator.witness[GROUP]}
        if world.operator.is_settled_as(GROUP, voters):
            strike(world, "wipe", leading, leading.wipe)
            _expect_acknowledgement(world, "with a newcomer and a witness")
            leading.boot()
        let_pass(world, 500)


@schedule(replace(WITNESSED, readers=1))
def witness_replaced(world: World) -> None:
    """Each of the three disks is given up in turn, twice, as soon as the cluster lets it go."""
    replaced_when_allowed.script(world)


@schedule(WITNESSED)
def witness_damaged(world: World) -> None:
    """The witness loses what it has to a flipped bit and begins anew; at last in a power cut."""
    rng = world.faults.rng
    (node,) = (world.nodes[one] for one in world.witness_ids)
    for _ in range(2):
        _await_snapshot(world)
        strike(world, "crash", node, node.crash)
        strike(world, "bit_flip", node, lambda: damage_snapshot(world, node))
        node.boot()
        let_pass(world, rng.choice((100, 700)))
    _await_snapshot(world)
    for one in world.nodes.values():
        strike(world, "power_loss", one, one.lose_power)
    # Nobody is vouched for until there is a leader again: so it is still lost when all healed and
    # the others agree (seed 509 of those with witnesses).
    strike(world, "bit_flip", node, lambda: damage_snapshot(world, node))


@schedule(WITNESSED)
def witness_behind(world: World) -> None:
    """The witness is away until nobody has what it lacks in a log; then the leader is lost, too."""
    rng = world.faults.rng
    (node,) = (world.nodes[one] for one in world.witness_ids)
    for _ in range(2):
        leading, other = _both(world)
        strike(world, "partition", node, lambda: isolate(world, [node]))
        until(world, lambda: _is_left_behind(world, leading, other))  # noqa: B023 - called now
        if rng.random() < 0.5:
            strike(world, "wipe", leading, leading.wipe)
        else:
            strike(world, "power_loss", leading, leading.lose_power)
        world.network.heal()
        _expect_acknowledgement(world, "with a witness that was behind what is kept")
        leading.boot()
        let_pass(world, rng.choice((50, 600)))


def _is_left_behind(world: World, *full: SimNode) -> bool:
    """Tell whether none of the full replicas has in its log what follows on the witness's."""
    witness = world.operator.witness_of(GROUP)
    assert witness is not None
    return all(replica_on(one).first_index > witness.last_index + 1 for one in full)


def _await_snapshot(world: World) -> None:
    """Wait until all is well and the witness has a snapshot, which can be damaged."""

    def has_snapshot() -> bool:
        witness = world.operator.witness_of(GROUP)
        return witness is not None and witness.snapshot_index > 0

    _both(world)
    until(world, has_snapshot)


def _both(world: World) -> tuple[SimNode, SimNode]:
    """Return the full replicas, the leader first, when all is well."""
    world.wait(20 * SECOND, lambda: _is_well(world))
    if not _is_well(world):
        world.history.incidents.append("C10: two replicas and a witness do not come together")
    leading = leader(world)
    wanted = [world.nodes[one] for one in sorted(world.operator.wanted[GROUP])]
    return leading, next(one for one in wanted if one is not leading)


def _is_well(world: World) -> bool:
    leading = world.operator.leader(GROUP)
    return (
        leading is not None
        and world.operator.is_settled(GROUP)
        and world.is_caught_up(GROUP)
        and set(world.operator.full_replicas(GROUP, leading)) == world.operator.votes(GROUP)
    )


def _expect_acknowledgement(world: World, when: str) -> None:
    before, deadline = _acknowledged(world), world.scheduler.now + TAKEN_OVER_MS * 1_000

    def is_answered() -> bool:
        return _acknowledged(world) > before or world.scheduler.now > deadline or world.is_broken

    until(world, is_answered)
    if _acknowledged(world) == before:
        world.history.incidents.append(f"C10: nothing is acknowledged {when}")


def _acknowledged(world: World) -> int:
    return sum(one.result is Result.OK for one in world.history.publishes)
