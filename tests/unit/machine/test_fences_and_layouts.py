"""Fences in a partition, and layouts of a topic in the catalog."""

from __future__ import annotations

import msgspec

from angarium.batch import encode as batch
from angarium.ids import Epoch, Index, Micros, NodeId, RaftGroupId, Sequence, Term, TopicId
from angarium.machine import (
    Commit,
    Decided,
    Done,
    Fence,
    PartitionMachine,
    Projection,
    Refused,
    Reserve,
    Stage,
    encode,
)
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


def test_it_is_noted_since_when_each_layout_is_in_force() -> None:
    topics, topic_id = Topics(), TopicId(1)
    group = RaftGroupId(1)
    topics.partitions[group] = Partition(group, topic_id, 0, (NodeId(1),), ())
    topics.by_id[topic_id] = Topic(topic_id, "t", TopicSettings(), (group,), Micros(0))
    for layout in (1, 2, 3):
        grown = laid_out_anew(topics.by_id[topic_id], layout + 1)
        topics.by_id[topic_id] = msgspec.structs.replace(grown, unfenced=(0,))
        fenced = Fenced(group=group, layout=layout, time=Micros(1_000 * layout))
        # Below the feature level nothing is noted.
        topics.fenced(fenced, is_timed=layout != 1)
    topic = topics.by_id[topic_id]
    assert topic.begun == (0, 0, 2_000, 3_000)
    assert [topic.ended(layout) for layout in range(4)] == [None, 2_000, 3_000, None]


class Numbered:
    """A partition to which one producer publishes under numbers of its own."""

    def __init__(self) -> None:
        self.machine = PartitionMachine()
        self._time = 0

    def apply(self, command: Stage | Commit | Fence) -> object:
        self._time += 1_000
        timed = msgspec.structs.replace(command, time=Micros(self._time))
        index = Index(self.machine.applied_index + 1)
        return self.machine.apply(index, Term(1), encode(timed)).outcomes[0]

    def publish(self, number: int, layout: int, *, counts_fences: bool = True) -> object:
        batches = bytes(batch([b"x"]))
        named = {"name": "n", "epoch": Epoch(1), "sequence": Sequence(number)}
        self.apply(Stage(**named, stage="s", part=0, batches=batches, layout=layout))  # type: ignore[arg-type]
        commit = Commit(**named, stages=("s",), counts_fences=counts_fences)  # type: ignore[arg-type]
        return self.apply(commit)

    def has(self, number: int, layout: int) -> bool:
        """Tell whether a number was stored while an earlier layout was in force."""
        command = Stage(
            name="n", epoch=Epoch(1), sequence=Sequence(number), stage="s", part=0, layout=layout
        )
        outcome = self.apply(command)
        if isinstance(outcome, Refused):
            assert outcome.code == "LAYOUT_CHANGED"
            return False
        assert isinstance(outcome, Decided)
        return outcome.repeated


def test_a_number_is_known_by_the_layout_under_which_it_was_stored() -> None:
    partition = Numbered()
    for number in (3, 5):
        partition.publish(number, 0)
    partition.apply(Fence(layout=1))
    assert [n for n in range(12) if partition.has(n, 0)] == [0, 1, 2, 3, 4, 5]
    # What comes behind the fence is of keys that stay; another one's may be on its way elsewhere.
    partition.publish(9, 1)
    assert [n for n in range(12) if partition.has(n, 0)] == [0, 1, 2, 3, 4, 5]
    for layout in (2, 3):
        partition.apply(Fence(layout=layout))
    restored = PartitionMachine()
    restored.restore(partition.machine.snapshot())
    partition.machine = restored
    assert [n for n in range(12) if partition.has(n, 1)] == [6, 7, 8, 9]
    partition.publish(11, 3)
    assert [n for n in range(12) if partition.has(n, 0)] == [0, 1, 2, 3, 4, 5]
    assert [n for n in range(12) if partition.has(n, 1)] == [6, 7, 8, 9]
    assert [n for n in range(12) if partition.has(n, 2)] == []


def test_what_is_kept_of_fences_follows_from_the_log_alone() -> None:
    """A release before level 8 has applied the commit, and keeps nothing of fences."""
    partition = Numbered()
    partition.publish(5, 0)
    partition.apply(Fence(layout=1))
    partition.publish(9, 1, counts_fences=False)
    series = partition.machine.numbering.transactions.series.get("n")
    assert series is not None
    assert series.fenced == ()
    partition.apply(Fence(layout=2))
    # 6 to 8 may never have been stored: no yes for them, whatever it costs the others.
    assert [n for n in range(12) if partition.has(n, 0)] == []
    assert [n for n in range(12) if partition.has(n, 1)] == []
    partition.publish(11, 2)
    partition.apply(Fence(layout=3))
    assert [n for n in range(14) if partition.has(n, 0)] == []
    assert [n for n in range(14) if partition.has(n, 1)] == []
    assert [n for n in range(14) if partition.has(n, 2)] == [10, 11]


def test_a_name_that_begins_behind_a_fence_has_nothing_before_it() -> None:
    partition = Numbered()
    partition.apply(Fence(layout=1))
    partition.publish(5, 1)
    partition.apply(Fence(layout=2))
    partition.publish(9, 2)
    assert [n for n in range(12) if partition.has(n, 0)] == []
    assert [n for n in range(12) if partition.has(n, 1)] == [0, 1, 2, 3, 4, 5]


def test_a_question_is_never_staged() -> None:
    partition = Numbered()
    assert not partition.has(3, 0)
    assert not partition.machine.open_stages()
    outcome = partition.publish(3, 0)
    assert isinstance(outcome, Decided)
    assert (outcome.repeated, outcome.next_offset) == (False, 1)


def test_a_transaction_of_an_older_layout_is_aborted_whatever_is_stored() -> None:
    partition = Numbered()
    partition.publish(5, 0)
    partition.apply(Fence(layout=1))
    staged = Stage(
        name="n",
        epoch=Epoch(1),
        sequence=Sequence(5),
        home=RaftGroupId(9),
        stage="s",
        part=0,
        layout=0,
    )
    outcome = partition.apply(staged)
    assert isinstance(outcome, Refused)
    assert outcome.code == "TRANSACTION_ABORTED"
