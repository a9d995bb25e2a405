"""Which partitions of a topic a feed may read, as layouts come and fences are reached."""

from __future__ import annotations

from tests.unit.api.test_fences import GROWN, topic

from angarium.api import Delivery, Start, StartAt, TopicInfo
from angarium.api.fences import Gates, stretch
from angarium.batch import encode, stamp
from angarium.doors.feeds.following import Following, Whole
from angarium.ids import Micros, Offset, Term

PLAIN = topic((), (), layouts=(), layout=0)
FENCED = topic((10,), (), (), layouts=(2, 3), layout=0)
"""A third partition has come, and only the first one has its fence."""
IN_FORCE = topic((10,), (5,), (), layouts=(2, 3), layout=1)


def following(info: TopicInfo, *starts: int) -> Following:
    found = Following(Whole("t", Start(StartAt.EARLIEST)), info)
    for number, start in enumerate(starts):
        found.begin(number, start)
    return found


def due(it: Following) -> list[tuple[int, int, int | None]]:
    return [(one.partition, one.start.value, one.layout) for one in it.due()]


def brought(partition: int, base: int, count: int, *, start: int | None = None) -> Delivery:
    batch = encode([b"x"] * count)
    stamp(batch, base_offset=Offset(base), term=Term(1), append_time=Micros(1))
    begin = Offset(base if start is None else start)
    return Delivery(topic="t", partition=partition, batches=(batch,), from_offset=begin)


def test_what_was_stopped_goes_on_with_the_new_partition_when_all_have_stopped() -> None:
    it = following(PLAIN, 0, 0)
    assert due(it) == [(0, 0, 0), (1, 0, 0)]
    assert it.new_in(brought(0, 0, 10)) is not None
    it.stopped(0)
    assert (it.is_held, it.lacks_news) == (True, True)
    it.learn(IN_FORCE)
    assert list(it.unbegun) == [2]
    it.begin(2, 0)
    assert (it.is_held, it.lacks_news) == (True, False)
    assert due(it) == []
    # Nothing comes between 3 and the fence at 5: only that the node stops tells so.
    assert it.new_in(brought(1, 0, 3)) is not None
    assert due(it) == []
    it.stopped(1)
    assert due(it) == [(0, 10, 1), (1, 3, 1), (2, 0, 1)]
    assert not it.is_held


def test_a_gate_opens_for_others_before_a_silent_partition_is_stopped() -> None:
    it = following(PLAIN, 10, 5)
    assert due(it) == [(0, 10, 0), (1, 5, 0)]
    it.learn(IN_FORCE)
    it.begin(2, 0)
    assert due(it) == [(2, 0, 1)]
    it.stopped(0)
    assert due(it) == [(0, 10, 1)]


def test_nothing_goes_on_while_a_fence_may_be_anywhere() -> None:
    it = following(FENCED, 0, 0, 0)
    assert due(it) == [(0, 0, 0), (1, 0, 0)]
    it.stopped(0)
    it.stopped(1)
    assert due(it) == []
    assert it.lacks_news
    it.learn(IN_FORCE)
    assert due(it) == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]


def test_a_node_that_is_behind_does_not_take_anything_back() -> None:
    it = following(IN_FORCE, 0, 0, 0)
    it.learn(FENCED)
    it.learn(PLAIN)
    assert it.info is IN_FORCE


def test_nobody_waits_for_a_partition_that_is_not_wanted() -> None:
    it = following(IN_FORCE, 10, 0, 0)
    it.leave(1)
    assert due(it) == [(0, 10, 1), (2, 0, 1)]
    assert not it.has(1)


def test_what_comes_twice_is_handed_on_once() -> None:
    it = following(PLAIN, 0, 0)
    first = brought(0, 0, 4)
    assert it.new_in(first) is first
    assert it.new_in(first) is None
    rest = it.new_in(brought(0, 2, 4))
    assert rest is not None
    assert rest.from_offset == 4


def test_a_gate_is_shut_until_it_was_looked_at() -> None:
    gates = Gates()
    assert not gates.is_open(GROWN, 2)
    gates.look(GROWN, {0: 10, 1: 5, 2: 0, 3: 0})
    assert [gates.is_open(GROWN, one) for one in range(4)] == [True, True, True, False]


def test_who_catches_up_reads_layout_by_layout() -> None:
    ends = [25, 35, 9, 4]
    steps = []
    positions = [0, 0, 0, 0]
    while positions != ends:
        positions = stretch(GROWN, positions, ends)
        steps.append(positions)
    assert steps == [[10, 5, 0, 0], [20, 30, 7, 0], ends]


def test_who_catches_up_with_one_before_a_gap_does_not_wait_at_the_fence() -> None:
    # The other one was stopped at 8, with nothing before the fence at 10, and went on elsewhere.
    assert stretch(GROWN, [8, 5, 0, 0], [8, 6, 3, 0]) == [8, 6, 3, 0]
    assert stretch(GROWN, [9, 9, 9, 9], [9, 9, 9, 9]) == [9, 9, 9, 9]
