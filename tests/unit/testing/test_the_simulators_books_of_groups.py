"""What a simulated leader writes down about groups is what its successor may be judged by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from angarium.ids import Index, Offset
from angarium.kinds import GroupKind
from angarium.lending.configs import settings_of
from angarium.machine import Cursors
from angarium.machine.changes import DeadLetter, Open, Seek
from angarium.testing.group_history import Promised
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.lending import TOPIC, SimLending
from angarium.testing.sim.member import CONFIG
from angarium.testing.sim.script import GROUP, THREE
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from angarium.machine.changes import Change
    from angarium.replica.partition_replica import PartitionReplica

NAME = "key-1"


def a_world_at_work() -> tuple[World, PartitionReplica]:
    """Return a cluster whose log has some records, and its leader."""
    world = World(1, replace(THREE, readers=1))
    world.form()
    world.wait(10 * SECOND, lambda: world.seen_end(GROUP) > 10)
    leader = world.operator.leader(GROUP)
    assert leader is not None
    return world, leader


def carry_out(world: World, leader: PartitionReplica, change: Change) -> None:
    answers: list[object] = []
    node = world.node_of(leader.id)
    leader.partition.submit(
        Cursors(changes=(change,)), now=world.clock_of(node), reply=answers.append
    )
    node.poke(leader)
    world.wait(5 * SECOND, lambda: bool(answers))


def a_world_with_a_promise() -> tuple[World, PartitionReplica]:
    """Return a cluster with a group in which record 3 is to become a dead letter."""
    world, leader = a_world_at_work()
    carry_out(world, leader, Open(NAME, GroupKind.KEY, Offset(0), settings_of(CONFIG)))
    generation = Index(leader.partition.machine.groups.by_name[NAME].generation)
    carry_out(world, leader, DeadLetter(NAME, generation, Offset(3), "it fails"))
    return world, leader


def promises_of_the_next_leader(world: World, leader: PartitionReplica) -> list[Promised]:
    """Let somebody begin to lead the groups; return what it writes down as promised."""
    node = world.node_of(leader.id)
    node.do(SimLending(node).host.partition, TOPIC, GROUP)
    world.scheduler.run_until(world.scheduler.now)
    (tenure,) = world.history.groups.tenures
    return [event for event in tenure.events if isinstance(event, Promised)]


def test_a_promise_holds_for_whoever_leads_next() -> None:
    world, leader = a_world_with_a_promise()
    assert promises_of_the_next_leader(world, leader) == [Promised(3)]


def test_a_promise_of_before_a_seek_does_not_end_its_record() -> None:
    world, leader = a_world_with_a_promise()
    carry_out(world, leader, Seek(NAME, Offset(0)))
    assert leader.partition.machine.groups.by_name[NAME].intents, "it is still to be stored"
    assert promises_of_the_next_leader(world, leader) == []
