"""Schedules with bad disks: slow, lying, damaged, or new and empty."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from angarium.log.wal.files import log_name
from angarium.log.wal.format import FRAME_HEADER_BYTES
from angarium.log.wal.index import position_of, sequence_of
from angarium.testing.sim.clock import SECOND, START
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
    spare_takes_over,
    strike,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World


@schedule(replace(THREE, nodes=4, readers=0))
def damaged_leader(world: World) -> None:
    """A replica moves to a node that copies everything from a leader with a damaged segment."""
    until(world, lambda: _leader_has_sealed_segments(world))
    source = leader(world)
    _damage(world, source)
    spare_takes_over(world)
    let_pass(world, 1_500)


@schedule(replace(THREE, readers=0))
def damaged_at_rest(world: World) -> None:
    """A reader meets a damaged segment in a group that went to rest; peers are asked all the same.

    Nobody ticks a group at rest, so nothing that waits for ticks happens by itself.
    """
    until(world, lambda: _leader_has_sealed_segments(world))
    world.quiet_until = START + TIME_MAX
    until(world, lambda: all(node.host and node.host.resting for node in world.nodes.values()))
    node = world.faults.rng.choice(list(world.nodes.values()))
    _damage(world, node)
    log = replica_on(node).partition.log
    for segment in list(log.segments):
        log.verify_segment(segment.base_offset)
    let_pass(world, 2_000)
    if replica_on(node).is_mending:
        world.history.incidents.append("C10: damage was not mended within 2 s in a group at rest")


@schedule(replace(THREE, readers=0))
def damaged_follower(world: World) -> None:
    """A segment is damaged where nobody has looked yet; whoever reads it must not be served it."""
    until(world, lambda: _leader_has_sealed_segments(world))
    _damage(world, next(node for node in shuffled(world) if node is not leader(world)))


@schedule()
def lost_replica(world: World) -> None:
    """Of two that acknowledged, one loses its snapshot, the other goes, and the third is back.

    Whoever began anew at once, as what it was, would elect the one that lacks the records.
    """
    until(world, lambda: world.operator.leader(GROUP) is not None)
    let_pass(world, 300)
    for _ in range(2):
        first = leader(world)
        near, far = (node for node in shuffled(world) if node is not first)
        strike(world, "partition", far, partial(isolate, world, [far]))
        let_pass(world, 400)
        strike(world, "crash", near, near.crash)
        strike(world, "bit_flip", near, partial(damage_snapshot, world, near))
        strike(world, "crash", first, first.crash)
        world.network.heal()
        near.boot()
        let_pass(world, 1_500)
        first.boot()
        # A newcomer copies every segment, and those that were written meanwhile.
        world.wait(20 * SECOND, lambda: _is_whole(world))
        if not _is_whole(world):
            world.history.incidents.append("C10: a lost replica was not back within 20 s")
            return


@schedule()
def slow_leader(world: World) -> None:
    """A leader's disk is slow, one of its followers is away, and then the leader's power fails."""
    let_pass(world, 400)
    slow = leader(world)
    near, far = (node for node in shuffled(world) if node is not slow)
    strike(world, "slow_disk", slow, partial(setattr, slow, "slow_syncs", True))
    strike(world, "partition", far, lambda: isolate(world, [far]))
    let_pass(world, 190)
    strike(world, "power_loss", slow, slow.lose_power)
    _swap_minority(world, away=near, back=slow)


@schedule()
def lying_disk(world: World) -> None:
    """Syncs fail on one of the two nodes that still work; it must not go on with what is left."""
    for _ in range(5):
        let_pass(world, 300)
        far, lying, near = shuffled(world)
        strike(world, "partition", far, lambda: isolate(world, [far]))  # noqa: B023 - called now
        let_pass(world, 100)
        # Only the last syncs before the power fails: a loss further back would be noticed, because
        # what was written after it says that it had been synced.
        strike(world, "sync_failure", lying, partial(lying.disk.fail_syncs, 1_000))
        let_pass(world, world.faults.rng.randrange(2, 8))
        lying.disk.fail_syncs(0)
        if lying.is_up:
            strike(world, "power_loss", lying, lying.lose_power)
        _swap_minority(world, away=near, back=lying)


@schedule()
def interrupted_snapshot(world: World) -> None:
    """On slow disks, nodes crash in the middle of saving a snapshot, one after the other."""
    for node in (*shuffled(world), *shuffled(world)):
        node.slow_syncs = True
        until(world, lambda: replica_on(node).is_busy)  # noqa: B023 - called at once
        let_pass(world, world.faults.rng.randrange(20, 120))
        strike(world, "crash", node, node.crash)
        node.slow_syncs = False
        node.boot()
        let_pass(world, 300)


@schedule()
def quick_wipe(world: World) -> None:
    """A node loses its disk and is back at once, while messages to what it was are under way."""
    let_pass(world, 500)
    for node in shuffled(world):
        strike(world, "wipe", node, node.wipe)
        node.boot()
        let_pass(world, 200)
        world.wait(10 * SECOND, lambda: _is_whole(world))
        if not _is_whole(world):
            world.history.incidents.append("C10: a wiped node was not replaced within 10 s")
            return


@schedule(replace(THREE, readers=0))
def holes_in_two_logs(world: World) -> None:
    """Single bits flip in the closed logs of two of three nodes, at different entries.

    What one of them lacks the others have, so neither is to give its replica up.
    """
    for _ in range(3):
        let_pass(world, 700)
        nodes = shuffled(world)
        holes = [
            (node, where)
            for node, share in zip(nodes[:2], (0.3, 0.7), strict=True)
            for where in [_committed_entry(node, nodes, share)]
            if where is not None
        ]
        for node in nodes:
            strike(world, "clean_stop", node, node.stop)
        for node, (name, position) in holes:
            strike(world, "log_flip", node, partial(node.disk.flip_bit, name, position))
        for node in nodes:
            node.boot()
        world.wait(20 * SECOND, lambda: _is_whole(world))
        if not _is_whole(world):
            world.history.incidents.append("C10: two logs with a hole each were not mended in 20 s")
            return
        if any(node.renewed for node in nodes):
            world.history.incidents.append("a replica was given up for a hole that others can fill")
            return


@schedule(replace(THREE, readers=0))
def hole_before_a_follower(world: World) -> None:
    """A leader meets damage among the entries that a follower lacks when that one is back."""
    for _ in range(3):
        let_pass(world, 300)
        leading = leader(world)
        away = next(node for node in shuffled(world) if node is not leading)
        reached = leading.host.wal.log(GROUP).last if leading.host is not None else 0
        strike(world, "partition", away, partial(isolate, world, [away]))
        let_pass(world, 400)
        where = _committed_entry(leading, [leading], 0.5, after=reached)
        if where is not None:
            strike(world, "log_flip", leading, partial(leading.disk.flip_bit, *where))
        world.network.heal()
        world.wait(20 * SECOND, lambda: _is_whole(world))
        if not _is_whole(world):
            world.history.incidents.append("C10: a follower lacked what its leader could not read")
            return


def _committed_entry(
    node: SimNode, among: Sequence[SimNode], share: float, *, after: int = 0
) -> tuple[str, int] | None:
    """Return where in a node's log an entry lies that nodes know as committed, outside snapshots.

    It is the one `share` of the way from `after`, or from the newest snapshot, to the commit index.
    """
    replicas = [replica_on(one) for one in among]
    assert node.host is not None
    log = node.host.wal.log(GROUP)
    first = max(log.base, after + 1, *(one.snapshot_index + 1 for one in replicas))
    last = min(log.addressed_last, *(one.raft.commit for one in replicas))
    if last <= first:
        return None
    index = first + int(share * (last - first))
    where = log.addresses[index - log.base]
    # Behind the header, in the data or its padding; of an empty entry, in the header.
    position = position_of(where) + (FRAME_HEADER_BYTES if log.sizes[index - log.base] else 8)
    return log_name(sequence_of(where)), position


def _is_whole(world: World) -> bool:
    return world.operator.is_settled(GROUP) and world.is_caught_up(GROUP)


def _swap_minority(world: World, *, away: SimNode, back: SimNode) -> None:
    """Let the one that was away and the one that failed go on without the third."""
    world.network.heal()
    strike(world, "partition", away, lambda: isolate(world, [away]))
    if not back.is_up:
        back.boot()
    let_pass(world, 1_500)
    world.network.heal()
    let_pass(world, 500)


def _leader_has_sealed_segments(world: World) -> bool:
    leading = world.operator.leader(GROUP)
    return leading is not None and len(_segments(world.node_of(leading.id))) > 2


def _segments(node: SimNode) -> list[str]:
    return [name for name in node.disk.names() if name.endswith(".seg")]


def damage_snapshot(world: World, node: SimNode) -> None:
    """Flip a bit in the newest snapshot of the group."""
    name = max(name for name in node.disk.names() if name.endswith(".snapshot"))
    position = world.faults.rng.randrange(node.disk.length_of(name))
    node.disk.flip_bit(name, position)


def _damage(world: World, node: SimNode) -> None:
    """Flip a bit in a segment that takes no more appends."""
    name = world.faults.rng.choice(_segments(node)[:-1])
    position = world.faults.rng.randrange(node.disk.length_of(name))
    strike(world, "bit_flip", node, lambda: node.disk.flip_bit(name, position))
