"""How far a reader may go in a topic that was given partitions."""

from __future__ import annotations

from angarium.api import PartitionInfo, TopicConfig, TopicInfo
from angarium.api.fences import bound_of, gates_open
from angarium.api.layout import layout_of
from angarium.ids import Micros, Offset, TopicId


def topic(*fences: tuple[int, ...], layouts: tuple[int, ...], layout: int) -> TopicInfo:
    return TopicInfo(
        id=TopicId(1),
        name="t",
        config=TopicConfig(),
        partitions=tuple(
            PartitionInfo(number=number, replicas=(), fences=tuple(map(Offset, one)))
            for number, one in enumerate(fences)
        ),
        created_at=Micros(0),
        layouts=layouts,
        layout=layout,
    )


GROWN = topic((10, 20), (5, 30), (7,), (), layouts=(2, 3, 4), layout=2)
"""Two partitions, then a third, then a fourth."""


def test_a_topic_that_never_grew_has_no_gates() -> None:
    plain = topic((), (), layouts=(), layout=0)
    assert gates_open(plain, {}) == 0
    assert bound_of(plain, 1, 0) is None


def test_a_gate_opens_when_every_older_partition_was_read_up_to_its_fence() -> None:
    assert gates_open(GROWN, {0: 10, 1: 4}) == 0
    assert gates_open(GROWN, {0: 10}) == 0
    assert gates_open(GROWN, {0: 10, 1: 5}) == 1
    assert gates_open(GROWN, {0: 20, 1: 30, 2: 6}) == 1
    assert gates_open(GROWN, {0: 20, 1: 30, 2: 7}) == 2


def test_behind_a_closed_gate_nothing_is_read() -> None:
    assert [bound_of(GROWN, number, 0) for number in range(4)] == [10, 5, 0, 0]
    assert [bound_of(GROWN, number, 1) for number in range(4)] == [20, 30, 7, 0]
    assert [bound_of(GROWN, number, 2) for number in range(4)] == [None, None, None, None]


def test_a_fence_that_nobody_told_of_may_be_anywhere() -> None:
    unknown = topic((10,), (), (), layouts=(2, 3), layout=1)
    assert gates_open(unknown, {0: 99, 1: 99, 2: 99}) == 0


def test_keys_are_dealt_by_the_layout_in_force() -> None:
    waiting = topic((), (), (), layouts=(2, 3), layout=0)
    assert layout_of(waiting).partitions == (0, 1)
    assert layout_of(waiting).number == 0
    assert layout_of(GROWN).partitions == (0, 1, 2, 3)
    assert layout_of(GROWN).number == 2
