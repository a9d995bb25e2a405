"""Fences in a partition, and layouts of a topic in the catalog."""

from __future__ import annotations

import msgspec

from angarium.ids import Index, Micros, NodeId, RaftGroupId, Term, TopicId
from angarium.machine import Done, Fence, PartitionMachine, Projection, Reserve, encode
from angarium.machine.catalog import Fenced, Topic, TopicSettings
from angarium.machine.catalog.layouts import next_step
from angarium.machine.catalog.topics import Topics, laid_out_anew
from angarium.machine.catalog.values import Partition
from angarium.replica.acks import Dealt


def fenced_machine() -> PartitionMachine:
    machine = PartitionMachine()
    machine.apply(Index(1), Term(1), encode(Reserve(time=Micros(1), count=7)))
    machine.apply(Index(2), Term(1), encode(Fence(time=Micros(2), layout=1)))
    return machine


def test_a_fence_stands_where_the_partition_ends_and_outlives_snapshots() -> None:
    machine = PartitionMachine()
    machine.restore(fenced_machine().snapshot())
    assert (machine.layout, machine.fence(1), machine.fence(2)) == (1, 7, None)
    applied = machine.apply(Index(3), Term(1), encode(Fence(time=Micros(3), layout=1)))
    assert applied.outcomes == (Done(changed=False),)
    assert machine.fence_offsets == (7,)


def test_a_leader_heeds_a_fence_before_it_is_committed() -> None:
    projection = Projection(PartitionMachine())
    projection.submit(Fence(layout=2), term=Term(1), now=Micros(5))
    assert projection.layout == 2


def test_what_was_dealt_by_an_older_layout_is_refused() -> None:
    assert Dealt(1, born=0).fault(1) is None
    assert Dealt(0, born=0).fault(1) is not None
    assert Dealt(0, born=1).fault(0) is not None


def test_a_layout_is_in_force_once_every_older_partition_has_its_fence() -> None:
    topics, topic_id = Topics(), TopicId(1)
    groups = tuple(map(RaftGroupId, range(1, 4)))
    for number, group in enumerate(groups):
        topics.partitions[group] = Partition(group, topic_id, number, (NodeId(1),), ())
    topic = Topic(topic_id, "t", TopicSettings(), groups[:2], Micros(0))
    grown = msgspec.structs.replace(laid_out_anew(topic, 3), groups=groups)
    topics.by_id[topic_id] = grown
    assert (grown.layouts, grown.layout, grown.unfenced) == ((2, 3), 0, (0, 1))
    assert [grown.born(number) for number in range(3)] == [0, 0, 1]
    first, added = topics.partitions[groups[0]], topics.partitions[groups[2]]
    assert next_step(grown, first, fenced=0) == Fence(layout=1)
    assert next_step(grown, first, fenced=1) == Fenced(group=groups[0], layout=1)
    assert next_step(grown, added, fenced=0) is None
    assert topics.fenced(Fenced(group=groups[0], layout=0)) == Done(changed=False)
    topics.fenced(Fenced(group=groups[0], layout=1))
    assert topics.by_id[topic_id].layout == 0
    topics.fenced(Fenced(group=groups[1], layout=1))
    assert topics.by_id[topic_id].layout == 1
