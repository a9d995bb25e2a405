"""A schedule in which a majority is lost for good, the partition goes on, and the dead return.

What may be lost is told to the checkers exactly: what none of those that were left had. Whatever is
acknowledged before is held against the best of them, whatever comes later against everybody. The
dead come back with their disks, together and out of reach of all others for a while: they would be
a majority of what was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.ids import Incarnation, Micros, Term
from angarium.machine import PartitionMachine
from angarium.machine.catalog import Recovery
from angarium.node import survivors
from angarium.node.survivors import Survivor
from angarium.raft.messages import EntryKind
from angarium.testing.history import Result
from angarium.testing.sim.script import (
    GROUP,
    THREE,
    isolate,
    let_pass,
    replica_on,
    schedule,
    shuffled,
    strike,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import Index, ReplicaId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World


@schedule(replace(THREE, nodes=5, replicas=5, producers=2))
def lost_majority(world: World) -> None:
    """Three of five are lost for good; the best of the other two goes on; then all come back."""
    rng = world.faults.rng
    let_pass(world, 500)
    dead, left = (nodes := shuffled(world))[:3], nodes[3:]
    if rng.random() < 0.7:  # one that is behind, in a term of its own or in an earlier one
        strike(world, "partition", left[0], lambda: isolate(world, left[:1]))
        let_pass(world, rng.choice((200, 800)))
    if rng.random() < 0.5:
        _unsettle(world, dead)
    for node in dead:
        strike(world, "lost", node, node.lose_power if rng.random() < 0.5 else node.crash)
    world.network.heal()
    let_pass(world, rng.choice((20, 600)))
    _go_on(world, left)
    let_pass(world, rng.choice((100, 800)))
    if rng.random() < 0.5:
        (weak,) = [one for one in left if one is not _source(world)]
        strike(world, "crash", _source(world), _source(world).crash)
        let_pass(world, 300)
        world.nodes[world.operator.recoveries[GROUP].source].boot()
        strike(world, "crash", weak, weak.crash)
        weak.boot()
    # The dead find each other before anybody else, and clients find them.
    strike(world, "partition", dead[0], lambda: isolate(world, dead, clients=world.client_names()))
    for node in dead:
        node.boot()
        let_pass(world, rng.choice((0, 30)))
    let_pass(world, 1_200)
    world.network.heal()
    let_pass(world, 500)


def _unsettle(world: World, dead: list[SimNode]) -> None:
    """Have a change of members under way that the dead were needed for."""
    world.operator.wanted[GROUP].discard(dead[0].id)
    let_pass(world, 120)
    world.operator.wanted[GROUP].add(dead[0].id)


def _source(world: World) -> SimNode:
    return world.nodes[world.operator.recoveries[GROUP].source]


def _go_on(world: World, left: list[SimNode]) -> None:
    """Do what `angarium cluster recover-partition` does, by the same rules."""
    seen = [_seen(node) for node in left]
    source = survivors.best(seen)
    assert source is not None
    world.operator.recoveries[GROUP] = Recovery(
        group=GROUP,
        source=source.node,
        # Also of a node that the lost majority had just let go: it may know what it decided since.
        void=(*source.voters, *(node.replica_in(GROUP) for node in world.nodes.values())),
        fresh=tuple((one, Incarnation(world.faults.rng.getrandbits(48))) for one in world.nodes),
        times=1,
        recovered_at=Micros(world.scheduler.now),
    )
    # By hand, and not by the rule: what any of those that are left had must not be lost.
    best = max(seen, key=lambda one: (one.last_term, one.last_index))
    void = world.operator.recoveries[GROUP].void
    forgive(world, end_of(replica_on(world.nodes[best.node])), source.last_index, void)
    for node in left:
        node.hear_catalog()
    until(world, lambda: world.operator.leader(GROUP) is not None)


def end_of(replica: PartitionReplica) -> int:
    """Return where records end with all that is in a replica's log, committed or not."""
    whole = PartitionMachine()
    whole.restore(replica.partition.machine.snapshot())
    for entry in replica.unapplied():
        if entry.kind is EntryKind.NORMAL:
            whole.apply(entry.index, entry.term, entry.data)
    return whole.next_offset


def forgive(world: World, end: int, last: Index, void: Iterable[ReplicaId]) -> None:
    """Tell the checkers that nothing has to be kept of what came behind `end` so far."""
    history = world.history
    for publish in history.publishes:
        if publish.group == GROUP and publish.result is Result.OK and publish.base_offset >= end:
            publish.result, publish.base_offset = Result.INFO, -1
        publish.stored = False
    for fetch in history.fetches:
        fetch.records = tuple(one for one in fetch.records if one[0] < end)
        fetch.end = None if fetch.end is None or fetch.end > end else fetch.end
    history.high_waters = [one for one in history.high_waters if one.end <= end]
    world.forget_seen(GROUP, end)
    world.watch.forgive(GROUP, last, void)


def _seen(node: SimNode) -> Survivor:
    replica = replica_on(node)
    raft = replica.raft
    state = raft.conf_state
    return Survivor(
        node=node.id,
        replica=raft.id,
        last_term=Term(replica.storage.term(raft.last_index)),
        last_index=raft.last_index,
        commit=raft.commit,
        end_offset=replica.end_offset,
        voters=tuple(dict.fromkeys((*state.voters, *state.voters_outgoing))),
        listeners=(*state.learners, *state.learners_next),
    )
