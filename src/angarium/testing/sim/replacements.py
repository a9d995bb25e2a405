"""Schedules in which nodes come back with other disks than they had, as operators replace them.

Here nobody looks into the cluster to see whether a majority is safe: the next disk is given up when
the cluster itself says that it may. If it says so too early, records are gone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.ids import Offset, Term
from angarium.modes import DeliveryMode
from angarium.raft.messages import Message, MessageKind
from angarium.testing.history import Result
from angarium.testing.sim.clock import MILLISECOND, SECOND, START
from angarium.testing.sim.node import NEWS, SAVING, Said
from angarium.testing.sim.script import (
    GROUP,
    THREE,
    TIME_MAX,
    isolate,
    leader,
    let_pass,
    replica_on,
    schedule,
    shuffled,
    strike,
    until,
)

if TYPE_CHECKING:
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World


@schedule(replace(THREE, readers=1))
def replaced_one_by_one(world: World) -> None:
    """In an idle cluster each node in turn gets an empty disk, when all say that they are ready."""
    let_pass(world, 500)
    (reader,) = world.readers
    reader.active = False  # it would keep the groups awake by asking where the log ends
    end = _fall_silent(world)
    seen = len(world.history.fetches)
    for node in shuffled(world):
        _replace(world, node)
        for _ in range(20):
            reader.fetch_from(node.id, GROUP, Offset(0))
            let_pass(world, 10)
        # What an operator waits for before the next one: every `/readyz` says ok.
        world.wait(10 * SECOND, lambda: all(map(world.operator.is_ready, world.nodes.values())))
        if not all(map(world.operator.is_ready, world.nodes.values())):
            world.history.incidents.append(f"C10: {node.name} was not filled again within 10 s")
            return
    let_pass(world, 500)
    for fetch in world.history.fetches[seen:]:
        if not fetch.records and fetch.from_offset < end:
            world.history.incidents.append(
                f"C4: node {fetch.node} has nothing at {fetch.from_offset}, records end at {end}"
            )
            return


@schedule()
def replaced_when_allowed(world: World) -> None:
    """The same by somebody who only asks whether the next disk may go, at rest and under load."""
    let_pass(world, 500)
    for node in (*shuffled(world), *shuffled(world)):
        if world.faults.rng.random() < 0.5:
            _fall_silent(world)
        world.wait(10 * SECOND, lambda: world.operator.objection_to_losing(node.id) is None)  # noqa: B023 - called at once
        if world.operator.objection_to_losing(node.id) is not None:
            world.history.incidents.append(f"C10: {node.name} may not go for 10 s")
            return
        _replace(world, node)
        world.quiet_until = 0


@schedule(THREE)
def rolled_back(world: World) -> None:
    """A node's disk, or a part of it, is replaced by an older copy while another was away.

    The one that was away lacks what the other two had acknowledged. With the leader gone as well,
    only it and the forgetful one are left to elect a new one, as in the trial that lost records.
    """
    let_pass(world, 500)
    for _ in range(3):
        world.wait(10 * SECOND, lambda: _is_whole(world))
        leading = leader(world)
        forgetful, away = (node for node in shuffled(world) if node is not leading)
        copy = forgetful.disk.copied()
        strike(world, "partition", away, lambda: isolate(world, [away]))  # noqa: B023 - called now
        let_pass(world, 2 * NEWS // MILLISECOND + world.faults.rng.randrange(200, 800))
        prefix = world.faults.rng.choice(("", "", "wal/", "groups/", "snapshots/"))
        strike(world, f"rollback of {prefix or 'all'}", forgetful, forgetful.crash)
        forgetful.roll_back(copy, prefix)
        world.network.heal()
        if world.faults.rng.random() < 0.5:
            strike(world, "pause", leading, leading.pause)
        forgetful.boot()
        let_pass(world, 1_500)
        leading.resume()
        let_pass(world, 500)


@schedule(THREE)
def rolled_back_at_once(world: World) -> None:
    """All nodes are killed shortly after acknowledgements, and one disk comes back older.

    Again one was away before, and with the forgetful one it is a majority that lacks what was
    acknowledged. The third has heard how far the forgetful one was, a moment ago: no other node
    can refuse it, and the third knows only what it has written down.
    """
    let_pass(world, 500)
    for _ in range(3):
        world.wait(10 * SECOND, lambda: _is_whole(world))
        leading = leader(world)
        forgetful, away = (node for node in shuffled(world) if node is not leading)
        strike(world, "partition", away, lambda: isolate(world, [away]))  # noqa: B023 - called now
        let_pass(world, world.faults.rng.randrange(50, 400))
        copy = forgetful.disk.copied()
        let_pass(world, (NEWS + 2 * SAVING) // MILLISECOND + world.faults.rng.randrange(100, 400))
        for node in world.nodes.values():
            strike(world, "crash", node, node.crash)
        forgetful.roll_back(copy)
        world.network.heal()
        for node in shuffled(world):
            node.boot()
        let_pass(world, 2_500)


@schedule(replace(THREE, readers=0))
def contradicted(world: World) -> None:
    """A follower hears of another committed entry than it has, stops, and is restarted.

    Whichever of the two disks went back in time: it must not make up a majority again before people
    have looked, so nothing is acknowledged while the leader has only it. Then its disk is replaced.
    """
    let_pass(world, 500)
    world.wait(10 * SECOND, lambda: _is_whole(world))
    leading = leader(world)
    halted, third = (node for node in shuffled(world) if node is not leading)
    _contradict(leading, halted)
    for _ in range(world.faults.rng.randrange(1, 4)):
        strike(world, "crash", halted, halted.crash)
        let_pass(world, world.faults.rng.choice((20, 400)))
        halted.boot()
        let_pass(world, 300)
    strike(world, "crash", third, third.crash)
    let_pass(world, 1_000)  # what the third had acknowledged on its way is through
    before = _acknowledged(world)
    let_pass(world, 3_000)
    if _acknowledged(world) != before:
        world.history.incidents.append(f"C9: {halted.name} contradicted its leader and counts")
    third.boot()
    world.wait(10 * SECOND, lambda: world.operator.objection_to_losing(halted.id) is None)
    _replace(world, halted)
    let_pass(world, 500)


def _contradict(leading: SimNode, target: SimNode) -> None:
    """Say, as the leader would whose disk had gone back, that another entry is committed."""
    there, here = replica_on(leading).raft, replica_on(target).raft
    target.receive(
        Said(
            there.id,
            GROUP,
            Message(
                kind=MessageKind.APPEND,
                to=here.id,
                sender=there.id,
                term=there.term,
                index=here.commit,
                log_term=Term(there.term - 1),
                commit=here.commit,
            ),
        )
    )
    assert replica_on(target).halted


def _acknowledged(world: World) -> int:
    return sum(
        one.result is Result.OK and one.mode is DeliveryMode.CONSISTENT
        for one in world.history.publishes
    )


def _is_whole(world: World) -> bool:
    return world.operator.is_settled(GROUP) and world.is_caught_up(GROUP)


def _replace(world: World, node: SimNode) -> None:
    strike(world, "wipe", node, node.wipe)
    let_pass(world, world.faults.rng.choice((20, 200, 1_000)))
    if not node.is_up:
        node.boot()


def _fall_silent(world: World) -> int:
    """Let nobody publish any more, and groups go to rest; return where readers saw records end."""
    let_pass(world, 500)
    world.quiet_until = START + TIME_MAX
    until(world, lambda: all(node.host and node.host.resting for node in world.nodes.values()))
    return world.seen_end(GROUP)
